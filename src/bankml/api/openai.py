"""OpenAI's chat API as llama-server speaks it, with a receipt: one stream of Steps, written whole or as events."""

import secrets
import string
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bankml import __version__
from bankml.api.answering import BufferingWriter, Receipt
from bankml.api.logprobs import Logprobs, without_stop_word
from bankml.engine.completion import Finish, GenerationStats, Step
from bankml.errors import Cancelled
from bankml.http.exchange import EVENT_STREAM, Reply
from bankml.http.json_out import DONE, json_bytes, sse_event
from bankml.receipt.check import RECEIPT_KEY

FINGERPRINT = f"bankml-{__version__}"
ID_LETTERS = string.ascii_letters + string.digits

Json = dict[str, object]


def completion_id() -> str:
    return "chatcmpl-" + "".join(secrets.choice(ID_LETTERS) for _ in range(32))


@dataclass(frozen=True)
class Head:
    """What every object of one answer has in common."""

    model: str
    id: str = field(default_factory=completion_id)
    created: int = field(default_factory=lambda: int(time.time()))

    def around(self, choices: list[Json], kind: str) -> Json:
        return {
            "choices": choices,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
            "object": kind,
            "id": self.id,
        }


def usage(progress: GenerationStats) -> Json:
    return {
        "completion_tokens": progress.completion_tokens,
        "prompt_tokens": progress.prompt_tokens,
        "total_tokens": progress.completion_tokens + progress.prompt_tokens,
        "prompt_tokens_details": {"cached_tokens": progress.cached_tokens},
    }


def timings(progress: GenerationStats) -> Json:
    """llama-server's `timings`. A rate is null when its count or its time is 0.

    The generation's counts the forward passes that its time was spent on, one fewer than the tokens.
    """
    return {
        "cache_n": progress.cached_tokens,
        "prompt_n": progress.computed_tokens,
        "prompt_ms": round(progress.prompt_ms, 3),
        "prompt_per_second": _rate(progress.computed_tokens, progress.prompt_ms),
        "predicted_n": progress.completion_tokens,
        "predicted_ms": round(progress.predicted_ms, 3),
        "predicted_per_second": _rate(progress.decode_steps, progress.predicted_ms),
    }


def _rate(count: int, ms: float) -> float | None:
    return count * 1000 / ms if count > 0 and ms > 0 else None


class WholeWriter(BufferingWriter):
    """The answer as one object, when it is complete."""

    def __init__(self, head: Head, reply: Reply, logprobs: Logprobs, stop_tokens: Callable[[Step], int]) -> None:
        """`stop_tokens` counts the tokens of the stop string with which the answer's last Step ended, 0 without one."""
        super().__init__(reply)
        self._head = head
        self._logprobs = logprobs
        self._stop_tokens = stop_tokens

    def end(self, last: Step, receipt: Receipt) -> None:
        message = {"role": "assistant", "content": "".join(self._text)}
        choice: Json = {"finish_reason": last.finish, "index": 0, "message": message}
        entries = without_stop_word(self._entries, self._stop_tokens(last))
        if entries:
            choice["logprobs"] = {"content": self._logprobs.array(entries)}
        answer = self._head.around([choice], "chat.completion")
        answer |= {"usage": usage(last.progress), "timings": timings(last.progress), RECEIPT_KEY: receipt()}
        self._reply.whole(200, json_bytes(answer))


class StreamWriter:
    """The answer as server-sent events, a chunk for every Step that released text.

    A plain stream has no role delta. When probabilities are asked for, the first token's chunk has one before it, and
    each chunk has its token's entry; as in llama-server, a token that releases no text has neither chunk nor entry,
    unless it is the first. What the conversation brought along comes with the first text. The last chunk has the usage
    and the timings: the one with the finish reason, or, with `stream_options.include_usage`, the one without choices
    that OpenAI puts after it. Then the receipt, [DONE].
    """

    def __init__(self, head: Head, reply: Reply, logprobs: Logprobs, include_usage: bool) -> None:
        self._head = head
        self._reply = reply
        self._logprobs = logprobs
        self._include_usage = include_usage
        self._started = False
        self._prefill = ""

    def begin(self, prefill: str) -> None:
        self._prefill = prefill

    def step(self, step: Step) -> None:
        if not self._started:
            self._started = True
            self._reply.start(200, EVENT_STREAM)
        first = step.entry is not None and step.progress.completion_tokens == 1
        deltas: list[Json] = [{"role": "assistant", "content": None}] if first else []
        # Text that only the end of the answer released has a chunk without an entry.
        entry = step.entry if step.entry and (first or step.entry.released or self._prefill) else None
        if step.text or (self._prefill and (step.entry is not None or step.finish is not None)):
            deltas.append({"content": self._prefill + step.text})
            self._prefill = ""
        for delta in deltas:
            choice = self._choice(delta, None)
            if delta is deltas[-1] and entry is not None:
                choice["logprobs"] = {"content": self._logprobs.array([entry])}
            self._send(sse_event(self._chunk([choice])))

    def end(self, last: Step, receipt: Receipt) -> None:
        ending = [self._chunk([self._choice({}, last.finish)])]
        if self._include_usage:
            ending.append(self._chunk([]))
        ending[-1] |= {"usage": usage(last.progress), "timings": timings(last.progress)}
        for chunk in ending:
            self._send(sse_event(chunk))
        self._send(sse_event({RECEIPT_KEY: receipt()}))
        self._send(DONE)
        self._reply.finish()

    def _choice(self, delta: Json, finish: Finish | None) -> Json:
        return {"finish_reason": finish, "index": 0, "delta": delta}

    def _chunk(self, choices: list[Json]) -> Json:
        return self._head.around(choices, "chat.completion.chunk")

    def _send(self, data: bytes) -> None:
        if not self._reply.write(data):
            raise Cancelled
