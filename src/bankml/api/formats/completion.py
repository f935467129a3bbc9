"""llama-server's own `/completion`, with a receipt."""

from collections.abc import Mapping, Sequence

from bankml.api.formats.counts import prompt_progress, timings
from bankml.api.formats.ending import stop_type
from bankml.api.formats.response import Answer, Chunk, Json, ResponseContext, StreamRules, WithReceipt
from bankml.engine.completion import UNLIMITED, PromptProgress
from bankml.http.exchange import EVENT_STREAM
from bankml.text.answer import text_of

_ABSENT = object()


class CompletionFormat:
    """`/completion`. A stream's last object, with `stop: true`, has everything but the text, and the receipt; it ends
    the stream in place of [DONE]."""

    id = ""
    content_type = EVENT_STREAM
    rules = StreamRules(last_step=True)
    terminator = b""

    def __init__(self, context: ResponseContext) -> None:
        self._context = context

    def chunk(self, chunk: Chunk) -> Sequence[Json]:
        value: Json = {
            "index": self._context.index,
            "content": text_of(chunk.delta),
            "tokens": chunk.tokens,
            "stop": False,
            "id_slot": chunk.stats.slot,
            "tokens_predicted": chunk.stats.completion_tokens,
            "tokens_evaluated": chunk.stats.prompt_tokens,
        }
        if chunk.logprobs:
            value["completion_probabilities"] = chunk.logprobs
        timed = self._context.request.response.timings_per_token
        return (value | ({"timings": timings(chunk.stats)} if timed else {}),)

    def progress(self, progress: PromptProgress, seconds: float) -> Sequence[Json]:
        value: Json = {
            "index": self._context.index,
            "content": "",
            "tokens": [],
            "stop": False,
            "id_slot": progress.slot,
        }
        counts = {"tokens_predicted": 0, "tokens_evaluated": progress.total}
        return (value | counts | {"prompt_progress": prompt_progress(progress, seconds)},)

    def final(self, answer: Answer, receipt: WithReceipt) -> Sequence[Json]:
        return (receipt(self._selected(self.summary(answer, "", []))),)

    def buffered(self, answer: Answer, receipt: WithReceipt) -> Json:
        tokens = answer.tokens if self._context.request.response.return_tokens else []
        value = self.summary(answer, answer.content, tokens)
        if answer.logprobs:
            value["completion_probabilities"] = answer.logprobs
        return receipt(self._selected(value))

    def beside(self, context: ResponseContext) -> "CompletionFormat":
        return CompletionFormat(context)

    def together(self, values: Sequence[Json]) -> list[Json]:
        return list(values)

    def _selected(self, value: Json) -> Json:
        """`response_fields`: each a field, or a path such as `generation_settings/n_predict`, whose last part names it
        in the response; what is not there is left out, as in llama-server."""
        paths = self._context.request.response.fields
        if not paths:
            return value
        found: Json = {}
        for path in paths:
            inner: object = value
            for name in path.split("/"):
                inner = inner.get(name, _ABSENT) if isinstance(inner, Mapping) else _ABSENT
            if inner is not _ABSENT:
                found[path.rsplit("/", 1)[-1]] = inner
        return found

    def summary(self, answer: Answer, content: str, tokens: list[int]) -> Json:
        """The object that ends an answer; `content` and `tokens` are those that no object before it had."""
        context, stats = self._context, answer.stats
        n_context_tokens = stats.prompt_tokens + stats.completion_tokens
        return {
            "index": context.index,
            "content": content,
            "tokens": tokens,
            "id_slot": stats.slot,
            "stop": True,
            "model": context.model,
            "tokens_predicted": stats.completion_tokens,
            "tokens_evaluated": stats.prompt_tokens,
            "generation_settings": self._settings(),
            "prompt": self._prompt(),
            "has_new_line": "\n" in answer.content,
            "truncated": n_context_tokens >= context.resident.n_ctx,
            "stop_type": stop_type(answer.last, context.resident.tokens),
            "stopping_word": context.generation.pieces.stop_word or "",
            "tokens_cached": n_context_tokens - 1,  # the last token was drawn and not computed
            "timings": timings(stats),
        }

    def _settings(self) -> Mapping[str, object]:
        request, generation = self._context.request, self._context.generation
        limit = UNLIMITED if request.max_tokens is None else request.max_tokens
        rest = {
            "stop": list(request.stop or ()),
            "max_tokens": limit,
            "n_predict": limit,
            "stream": request.response.stream,
            "grammar": generation.grammar,
        }
        return {**generation.sampler.settings, **rest}

    def _prompt(self) -> str:
        """The prompt's tokens as text, control tokens included."""
        return self._context.resident.tokens.text(self._context.generation.job.prompt)
