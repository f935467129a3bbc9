"""OpenAI's chat completions as llama-server writes them, with a receipt."""

import secrets
import string
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bankml import __version__
from bankml.api.formats.completion import CompletionFormat
from bankml.api.formats.counts import prompt_progress, timings, usage
from bankml.api.formats.response import Answer, Chunk, Json, Receipt, ResponseContext, StreamRules
from bankml.engine.completion import PromptProgress
from bankml.http.exchange import EVENT_STREAM
from bankml.http.json_out import DONE
from bankml.receipt.check import RECEIPT_KEY

FINGERPRINT = f"bankml-{__version__}"
ID_LETTERS = string.ascii_letters + string.digits


def completion_id() -> str:
    return "chatcmpl-" + "".join(secrets.choice(ID_LETTERS) for _ in range(32))


@dataclass(frozen=True)
class CompletionObject:
    """What every object of one OpenAI response has in common."""

    model: str
    id: str = field(default_factory=completion_id)
    created: int = field(default_factory=lambda: int(time.time()))

    def with_choices(self, choices: list[Json], kind: str) -> Json:
        return {
            "choices": choices,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
            "object": kind,
            "id": self.id,
        }


class ChatFormat:
    """`/v1/chat/completions`.

    A stream's first chunk has the role. Its last chunk with a choice has the finish reason and the receipt, since
    clients expect every chunk to have a choice. Usage and timings are in that chunk, or with
    `stream_options.include_usage` in a chunk without choices after it, as in OpenAI's API.
    """

    content_type = EVENT_STREAM
    rules = StreamRules(role_first=True, released_entries_only=True, entries_alone=False)
    terminator = DONE

    def __init__(self, context: ResponseContext) -> None:
        self._object = CompletionObject(context.model)
        self._options = context.request.response
        self._context = context

    def chunk(self, chunk: Chunk) -> Json:
        role: Json = {"role": "assistant", "content": None}
        choice = _choice(role if chunk.delta is None else {"content": chunk.delta.text}, None)
        if chunk.logprobs:
            choice["logprobs"] = {"content": chunk.logprobs}
        value = self._chunk([choice])
        return value | {"timings": timings(chunk.stats)} if self._options.timings_per_token else value

    def progress(self, progress: PromptProgress, seconds: float) -> Json:
        return self._chunk([_choice({}, None)]) | {"prompt_progress": prompt_progress(progress, seconds)}

    def final(self, answer: Answer, receipt: Receipt) -> Sequence[Json]:
        last = self._chunk([_choice({}, answer.finish)])
        counts = {"usage": usage(answer.stats), "timings": timings(answer.stats)}
        counts |= self._verbose(answer)
        if self._options.include_usage:
            return last | {RECEIPT_KEY: receipt()}, self._chunk([]) | counts
        return (last | counts | {RECEIPT_KEY: receipt()},)

    def buffered(self, answer: Answer, receipt: Receipt) -> Json:
        message = {"role": "assistant", "content": answer.content}
        choice: Json = {"finish_reason": answer.finish, "index": 0, "message": message}
        if answer.logprobs:
            choice["logprobs"] = {"content": answer.logprobs}
        value = self._object.with_choices([choice], "chat.completion")
        counts = {"usage": usage(answer.stats), "timings": timings(answer.stats)}
        return value | counts | self._verbose(answer) | {RECEIPT_KEY: receipt()}

    def _verbose(self, answer: Answer) -> Json:
        """llama-server's `__verbose`: the answer as `/completion` would give it."""
        if not self._options.verbose:
            return {}
        return {"__verbose": CompletionFormat(self._context).summary(answer, answer.content, answer.tokens)}

    def _chunk(self, choices: list[Json]) -> Json:
        return self._object.with_choices(choices, "chat.completion.chunk")


def _choice(delta: Json, finish: str | None) -> Json:
    return {"finish_reason": finish, "index": 0, "delta": delta}
