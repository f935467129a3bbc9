"""Answers as Ollama writes them, with a receipt: one stream of Steps, as one object or as lines of JSON."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bankml.api.answering import BufferingWriter, Receipt
from bankml.api.logprobs import Logprobs, without_stop_word
from bankml.api.ollama.durations import moment, nanoseconds_of
from bankml.engine.completion import Step
from bankml.errors import Cancelled
from bankml.http.exchange import NDJSON, Reply
from bankml.http.json_out import json_bytes, ndjson_line
from bankml.receipt.check import RECEIPT_KEY

Json = dict[str, Any]
Carry = Callable[[str], Json]
"""Puts a part of the answer's text into an object."""


def message(text: str) -> Json:
    """How `/api/chat` carries text."""
    return {"message": {"role": "assistant", "content": text}}


def response(text: str) -> Json:
    """How `/api/generate` carries text."""
    return {"response": text}


@dataclass(frozen=True)
class Head:
    """What the objects of one answer have in common: the model as it was asked for, and how text is carried.

    `arrived` is the `time.monotonic()` of the request's first byte; `loading` the seconds that making the model
    resident took. `left_out` messages of the conversation did not fit the context.
    """

    model: str
    carry: Carry
    arrived: float
    loading: float = 0.0
    left_out: int = 0

    def part(self, text: str) -> Json:
        """An object before the last."""
        return {**self._begun(text), "done": False}

    def done(self, reason: str) -> Json:
        """The one object of an answer for which nothing was computed: the model was loaded, or unloaded."""
        return {**self._begun(""), "done": True, "done_reason": reason, **self._durations()}

    def final(self, text: str, last: Step, logprobs: list[Json], receipt: Receipt) -> Json:
        """The last object of an answer; `text` and `logprobs` are what no object before it had. `prompt_eval_count` is
        the whole prompt's, of which `bankml_cache_n` tokens were found in the cache."""
        counts = last.progress
        return {
            **self._begun(text),
            "done": True,
            "done_reason": last.finish,
            **self._durations(),
            "prompt_eval_count": counts.prompt_tokens,
            "prompt_eval_duration": nanoseconds_of(counts.prompt_ms / 1000),
            "eval_count": counts.completion_tokens,
            "eval_duration": nanoseconds_of(counts.predicted_ms / 1000),
            **({"logprobs": logprobs} if logprobs else {}),
            "bankml_cache_n": counts.cached_tokens,
            **({"bankml_messages_left_out": self.left_out} if self.left_out else {}),
            RECEIPT_KEY: receipt(),
        }

    def _begun(self, text: str) -> Json:
        return {"model": self.model, "created_at": moment(time.time_ns()), **self.carry(text)}

    def _durations(self) -> Json:
        total = time.monotonic() - self.arrived
        return {"total_duration": nanoseconds_of(total), "load_duration": nanoseconds_of(self.loading)}


def entry_with(n_alternatives: int) -> Callable[[Json], Json]:
    """Makes Ollama's entry of llama-server's: without `id`, and with at most `n_alternatives` beside the token."""

    def shaped(entry: Json) -> Json:
        tops = [_without_id(top) for top in entry["top_logprobs"][:n_alternatives]]
        rest = {name: value for name, value in _without_id(entry).items() if name != "top_logprobs"}
        return rest | ({"top_logprobs": tops} if tops else {})

    return shaped


def _without_id(entry: Json) -> Json:
    return {name: value for name, value in entry.items() if name != "id"}


class WholeWriter(BufferingWriter):
    """The answer as one object, when it is complete."""

    def __init__(self, head: Head, reply: Reply, logprobs: Logprobs, stop_tokens: Callable[[Step], int]) -> None:
        """`stop_tokens` counts the tokens of the stop string with which the answer's last Step ended, 0 without one."""
        super().__init__(reply)
        self._head = head
        self._logprobs = logprobs
        self._stop_tokens = stop_tokens

    def end(self, last: Step, receipt: Receipt) -> None:
        entries = self._logprobs.array(without_stop_word(self._entries, self._stop_tokens(last)))
        self._reply.whole(200, json_bytes(self._head.final("".join(self._text), last, entries, receipt)))


class StreamWriter:
    """The answer as lines of JSON: one for every Step that released text, then the last, which has none.

    Which tokens have an entry is as on `/v1/chat/completions`: the first, and those that released text. What the
    conversation brought along comes with the first text.
    """

    def __init__(self, head: Head, reply: Reply, logprobs: Logprobs) -> None:
        self._head = head
        self._reply = reply
        self._logprobs = logprobs
        self._started = False
        self._prefill = ""

    def begin(self, prefill: str) -> None:
        self._prefill = prefill

    def step(self, step: Step) -> None:
        if not self._started:
            self._started = True
            self._reply.start(200, NDJSON)
        entry = step.entry
        if entry is not None and not (step.progress.completion_tokens == 1 or entry.released or self._prefill):
            entry = None
        text = self._prefill + step.text
        if not (step.text or entry is not None or (text and step.finish is not None)):
            return
        self._prefill = ""
        part = self._head.part(text)
        if entry is not None:
            part["logprobs"] = self._logprobs.array([entry])
        self._send(part)

    def end(self, last: Step, receipt: Receipt) -> None:
        self._send(self._head.final("", last, [], receipt))
        self._reply.finish()

    def _send(self, value: Json) -> None:
        if not self._reply.write(ndjson_line(value)):
            raise Cancelled
