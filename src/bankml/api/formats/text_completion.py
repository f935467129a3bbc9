"""OpenAI's older completions as llama-server writes them, with a receipt."""

from collections.abc import Sequence

from bankml.api.formats.chat import CompletionObject, with_all_choices
from bankml.api.formats.counts import prompt_progress, timings, usage
from bankml.api.formats.response import Answer, Chunk, Json, ResponseContext, StreamRules, WithReceipt
from bankml.engine.completion import PromptProgress
from bankml.http.exchange import EVENT_STREAM
from bankml.http.json_out import DONE
from bankml.receipt.check import classic_arrays
from bankml.text.answer import text_of

KIND = "text_completion"


class TextCompletionFormat:
    """`/v1/completions`. A stream's last chunk has the finish reason, the usage, the timings and the receipt."""

    content_type = EVENT_STREAM
    rules = StreamRules()
    terminator = DONE

    def __init__(self, context: ResponseContext, shared: CompletionObject | None = None) -> None:
        self._object = shared or CompletionObject(context.model)
        self._index = context.index
        self._timings = context.request.response.timings_per_token
        self._sent = 0  # characters

    @property
    def id(self) -> str:
        return self._object.id

    def chunk(self, chunk: Chunk) -> Sequence[Json]:
        text = text_of(chunk.delta)
        at, self._sent = self._sent, self._sent + len(text)
        value = self._object.with_choices([self._choice(text, chunk.logprobs, None, at)], KIND)
        return (value | {"timings": timings(chunk.stats)} if self._timings else value,)

    def progress(self, progress: PromptProgress, seconds: float) -> Sequence[Json]:
        value = self._object.with_choices([self._choice("", [], None, self._sent)], KIND)
        return (value | {"prompt_progress": prompt_progress(progress, seconds)},)

    def final(self, answer: Answer, receipt: WithReceipt) -> Sequence[Json]:
        return (self._with_counts(self._choice("", [], answer.finish), answer, receipt),)

    def buffered(self, answer: Answer, receipt: WithReceipt) -> Json:
        return self._with_counts(self._choice(answer.content, answer.logprobs, answer.finish), answer, receipt)

    def beside(self, context: ResponseContext) -> "TextCompletionFormat":
        return TextCompletionFormat(context, self._object)

    def together(self, values: Sequence[Json]) -> Json:
        return with_all_choices(values)

    def _choice(self, text: str, logprobs: list[Json], finish: str | None, at: int = 0) -> Json:
        return {"text": text, "index": self._index, "logprobs": _logprobs(logprobs, at), "finish_reason": finish}

    def _with_counts(self, choice: Json, answer: Answer, receipt: WithReceipt) -> Json:
        value = self._object.with_choices([choice], KIND)
        return receipt(value | {"usage": usage(answer.stats), "timings": timings(answer.stats)})


def _logprobs(entries: list[Json], at: int) -> Json | None:
    """OpenAI's arrays, one element a token, beside llama-server's entries. `at` is the offset of the first token in the
    text, in characters."""
    if not entries:
        return None
    return classic_arrays(entries, at) | {"content": entries}
