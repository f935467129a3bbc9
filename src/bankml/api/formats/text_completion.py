"""OpenAI's older completions as llama-server writes them, with a receipt."""

from collections.abc import Sequence

from bankml.api.formats.chat import CompletionObject
from bankml.api.formats.counts import timings, usage
from bankml.api.formats.response import Answer, Chunk, Json, Receipt, ResponseContext, StreamRules
from bankml.http.exchange import EVENT_STREAM
from bankml.http.json_out import DONE
from bankml.receipt.check import RECEIPT_KEY

KIND = "text_completion"


class TextCompletionFormat:
    """`/v1/completions`. A stream's last chunk has the finish reason, the usage, the timings and the receipt."""

    content_type = EVENT_STREAM
    rules = StreamRules()
    terminator = DONE

    def __init__(self, context: ResponseContext) -> None:
        self._object = CompletionObject(context.model)

    def chunk(self, chunk: Chunk) -> Json:
        text = "" if chunk.delta is None else chunk.delta.text
        return self._object.with_choices([_choice(text, chunk.logprobs, None)], KIND)

    def final(self, answer: Answer, receipt: Receipt) -> Sequence[Json]:
        return (self._with_counts(_choice("", [], answer.finish), answer, receipt),)

    def buffered(self, answer: Answer, receipt: Receipt) -> Json:
        return self._with_counts(_choice(answer.content, answer.logprobs, answer.finish), answer, receipt)

    def _with_counts(self, choice: Json, answer: Answer, receipt: Receipt) -> Json:
        value = self._object.with_choices([choice], KIND)
        return value | {"usage": usage(answer.stats), "timings": timings(answer.stats), RECEIPT_KEY: receipt()}


def _choice(text: str, logprobs: list[Json], finish: str | None) -> Json:
    entries = {"content": logprobs} if logprobs else None
    return {"text": text, "index": 0, "logprobs": entries, "finish_reason": finish}
