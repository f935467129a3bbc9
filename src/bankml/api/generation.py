"""A request bound to a loaded model: its prompt's tokens, its sampler and the parser of its answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bankml.api.fitting import truncated
from bankml.api.reading.fields import refuse
from bankml.api.reading.generation import THINKING_OFF
from bankml.engine.completion import UNLIMITED, Job, fits
from bankml.engine.parts import TextPieces, TokenSampler
from bankml.errors import RequestError
from bankml.grammar.constraint import completion_constraint
from bankml.grammar.content import JsonAnswer
from bankml.grammar.json_schema.not_enforced import not_enforced
from bankml.library.request import GenerationRequest, RawPrompt
from bankml.library.resident import Resident, Tokens
from bankml.text.answer import AnswerParser, PlainAnswer
from bankml.text.messages import Conversation
from bankml.text.template import ChatTemplate


@dataclass(frozen=True)
class Generation:
    """What is generated and how. `prefill` is the beginning of the answer that the request continues, `grammar` the
    GBNF that constrains a raw prompt's continuation ("" for none). `left_out` counts the messages that the context had
    no room for, `not_enforced` are the paths of the schema's keywords that the grammar does not hold."""

    job: Job
    sampler: TokenSampler
    pieces: TextPieces
    parser: AnswerParser = field(default_factory=PlainAnswer)
    prefill: str = ""
    grammar: str = ""
    left_out: int = 0
    not_enforced: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContextRule:
    """The context of one answer: `n_ctx` tokens, at which it ends (None: the model's own context). With `truncate` a
    conversation that does not fit loses its oldest messages; without, it is refused."""

    n_ctx: int | None = None
    truncate: bool = False


def bind(request: GenerationRequest, resident: Resident, context: ContextRule) -> Generation:
    """What `request` asks the loaded model for. Raises RequestError for messages, samplers, tokens, schemas and
    grammars that cannot be used, ContextExceeded for a prompt that does not fit."""
    if isinstance(request.prompt, RawPrompt):
        bound = _completion(request, request.prompt, resident)
    else:
        bound = _chat(request, request.prompt, resident, context)
    n_ctx = resident.n_ctx if context.n_ctx is None else min(context.n_ctx, resident.n_ctx)
    fits(len(bound.job.prompt), n_ctx)
    return bound if context.n_ctx is None else _limited(bound, n_ctx)


def _chat(
    request: GenerationRequest, conversation: Conversation, resident: Resident, context: ContextRule
) -> Generation:
    spec = request.constraint
    for_grammar, left_out = spec.schema is not None, 0
    if context.truncate:
        n_ctx = resident.n_ctx if context.n_ctx is None else min(context.n_ctx, resident.n_ctx)
        prompt, left_out = truncated(conversation, resident, n_ctx, for_grammar)
    else:
        prompt = resident.render(conversation, for_grammar=for_grammar)
    pieces = resident.text_stream(request.stop or (), chat=True, begun=bool(prompt.prefill))
    sampler = resident.sampler(request.sampling)
    refuse_thoughts(conversation, resident.template, constrained=spec.schema is not None)
    job = _job(request, resident.tokenize(prompt))
    parser: AnswerParser = PlainAnswer()
    if spec:
        constraint = resident.chat_constraint(spec, prompt)
        sampler = resident.with_grammar(sampler, constraint)
        if constraint.shape is not None:
            parser = JsonAnswer(constraint.shape, constraint.opening, request.response.stream)
    dropped = not_enforced(spec.schema) if spec.schema is not None and not spec.strict else ()
    return Generation(job, sampler, pieces, parser, prompt.prefill, left_out=left_out, not_enforced=dropped)


def _completion(request: GenerationRequest, prompt: RawPrompt, resident: Resident) -> Generation:
    constraint = completion_constraint(request.constraint) if request.constraint else None
    job = _job(request, prompt_tokens(prompt.parts, resident.tokens))
    sampler = resident.sampler(request.sampling)
    if constraint is not None:
        sampler = resident.with_grammar(sampler, constraint)
    pieces = resident.text_stream(request.stop or ())
    grammar = "" if constraint is None else constraint.grammar
    dropped = () if request.constraint.schema is None else not_enforced(request.constraint.schema)
    return Generation(job, sampler, pieces, grammar=grammar, not_enforced=dropped)


def _job(request: GenerationRequest, tokens: Sequence[int]) -> Job:
    limit = UNLIMITED if request.max_tokens is None else request.max_tokens
    return Job(tokens, limit, request.cache_prompt)


def prompt_tokens(parts: Sequence[str | int], tokens: Tokens) -> list[int]:
    """The parts of a prompt as one list of tokens. Raises RequestError, in llama-server's words, for an unknown id."""
    ids: list[int] = []
    for part in parts:
        if isinstance(part, str):
            ids += tokens.encode(part)
        elif 0 <= part < tokens.n_vocab:
            ids.append(part)
        else:
            raise RequestError("Prompt contains invalid tokens")
    return ids


def _limited(bound: Generation, n_ctx: int) -> Generation:
    """The same, ended when the context of `n_ctx` tokens is full."""
    job = bound.job
    room = n_ctx - len(job.prompt)
    if UNLIMITED < job.max_tokens <= room:
        return bound
    return replace(bound, job=replace(job, max_tokens=room))


def refuse_thoughts(conversation: Conversation, template: ChatTemplate, constrained: bool) -> None:
    """Refuses what would have llama-server separate a thought from the content, or write it as content together with
    the prompt's end: thinking switched on, and `reasoning_format` none."""
    plain = conversation.reasoning_format == "none"
    # To a template that asks whether it is false, null and 0 are as good as true.
    on = conversation.template_arguments.get("enable_thinking", False) is not False
    if not (plain or on) or not template.reasoning.end.strip():
        return
    if plain:
        raise refuse("reasoning_format", f'{THINKING_OFF} (got "none")')
    if not constrained:
        raise refuse("chat_template_kwargs", f"{THINKING_OFF}, but enable_thinking is not false")
