"""A request bound to a loaded model: its prompt's tokens, its sampler and the parser of its answer."""

import itertools
import secrets
import string
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from bankml.answers.parser import FormattedAnswer
from bankml.api.fitting import truncated
from bankml.api.infill import infill_tokens
from bankml.engine.completion import UNLIMITED, Job, fits
from bankml.engine.parts import TextPieces, TokenSampler
from bankml.errors import RequestError
from bankml.grammar.constraint import Constraint, completion_constraint
from bankml.grammar.json_schema.not_enforced import not_enforced
from bankml.library.request import GenerationRequest, InfillPrompt, RawPrompt
from bankml.library.resident import Resident, Tokens
from bankml.receipt.replay_record import token_hash
from bankml.text.answer import AnswerParser, PlainAnswer, WholeCalls
from bankml.text.messages import Conversation

ID_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Generation:
    """What is generated and how. `grammar` is the GBNF that constrains a raw prompt's continuation ("" for none).
    `left_out` counts the messages that the context had no room for, `not_enforced` are the paths of the schema's
    keywords that the grammar does not hold, `rendered_at` is when a template was rendered, in seconds since the
    epoch."""

    job: Job
    sampler: TokenSampler
    pieces: TextPieces
    parser: AnswerParser = field(default_factory=PlainAnswer)
    grammar: str = ""
    left_out: int = 0
    not_enforced: tuple[str, ...] = ()
    rendered_at: float | None = None


@dataclass(frozen=True)
class ContextRule:
    """The context of one answer: `n_ctx` tokens, at which it ends (None: the model's own context). With `truncate` a
    conversation that does not fit loses its oldest messages; without, it is refused."""

    n_ctx: int | None = None
    truncate: bool = False


def bind(request: GenerationRequest, resident: Resident, context: ContextRule) -> Generation:
    """What `request` asks the loaded model for. Raises RequestError for messages, samplers, tokens, schemas and
    grammars that cannot be used, ContextExceeded for a prompt that does not fit."""
    resident.require_generating()
    if isinstance(request.prompt, Conversation):
        bound = _chat(request, request.prompt, resident, context)
    else:
        bound = _completion(request, request.prompt, resident)
    _check_slot(request.slot, len(resident.engine.slots))
    n_ctx = resident.n_ctx if context.n_ctx is None else min(context.n_ctx, resident.n_ctx)
    fits(len(bound.job.prompt), n_ctx)
    return bound if context.n_ctx is None else _limited(bound, n_ctx)


def _chat(
    request: GenerationRequest, conversation: Conversation, resident: Resident, context: ContextRule
) -> Generation:
    spec, left_out = request.constraint, 0
    if conversation.now is None:
        conversation = replace(conversation, now=time.time() if resident.moment is None else resident.moment)
    if context.truncate:
        n_ctx = resident.n_ctx if context.n_ctx is None else min(context.n_ctx, resident.n_ctx)
        form, left_out = truncated(conversation, resident, n_ctx, spec)
    else:
        form = resident.answer_format(conversation, spec)
    pieces = resident.text_stream((*(request.stop or ()), *form.stops), chat=True, begun=form.continues)
    sampler = resident.sampler(request.sampling)
    tokens = resident.tokenize(form)
    job = replace(_job(request, tokens), preserved=resident.preserved(form), user_starts=resident.user_starts(tokens))
    if spec.grammar:
        sampler = resident.with_grammar(sampler, Constraint(spec.grammar))
    else:
        sampler = resident.with_format(sampler, form, request.thought)
    streamed = request.response.stream
    echo = conversation.repeats or not streamed
    parser: AnswerParser = FormattedAnswer(form, call_ids(tokens, sampler.seed), echo=echo, streamed=streamed)
    if request.response.whole_calls:
        parser = WholeCalls(parser)
    dropped = not_enforced(spec.schema) if spec.schema is not None and not spec.strict else ()
    return Generation(
        job, sampler, pieces, parser, left_out=left_out, not_enforced=dropped, rendered_at=conversation.now
    )


def random_id() -> str:
    """32 letters and digits."""
    return "".join(secrets.choice(ID_LETTERS) for _ in range(32))


def call_ids(prompt: Sequence[int], seed: int | None) -> Callable[[], str]:
    """The ids of an answer's tool calls to which the model gave none, one after the other. They are a function of the
    prompt's tokens and the seed: receipts cover them, and an answer that is computed again has the same ones."""
    numbers, source = itertools.count(), token_hash(prompt)

    def next_id() -> str:
        digest = sha256(f"{source} {seed} {next(numbers)}".encode("ascii")).digest()
        return "".join(ID_LETTERS[byte % len(ID_LETTERS)] for byte in digest)

    return next_id


def _completion(request: GenerationRequest, prompt: RawPrompt | InfillPrompt, resident: Resident) -> Generation:
    constraint = completion_constraint(request.constraint) if request.constraint else None
    if isinstance(prompt, InfillPrompt):
        tokens = infill_tokens(prompt, resident.tokens, resident.fill_in, resident.n_ctx)
    else:
        tokens = prompt_tokens(prompt.parts, resident.tokens)
    job = _job(request, tokens)
    sampler = resident.sampler(request.sampling)
    if constraint is not None:
        sampler = resident.with_grammar(sampler, constraint)
    pieces = resident.text_stream(request.stop or ())
    grammar = "" if constraint is None else constraint.grammar
    dropped = () if request.constraint.schema is None else not_enforced(request.constraint.schema)
    return Generation(job, sampler, pieces, grammar=grammar, not_enforced=dropped)


def _job(request: GenerationRequest, tokens: Sequence[int]) -> Job:
    limit = UNLIMITED if request.max_tokens is None else request.max_tokens
    return Job(tokens, limit, request.cache_prompt, slot=request.slot)


def _check_slot(wanted: int | None, slots: int) -> None:
    if wanted is not None and wanted >= slots:
        known = "there is one slot, 0" if slots == 1 else f"the slots are 0 to {slots - 1}"
        raise RequestError(f"Field 'id_slot': {known}, not {wanted}")


def prompt_tokens(parts: Sequence[str | int], tokens: Tokens) -> list[int]:
    """The parts of a prompt as one list of tokens; a text that comes first has what texts of the vocabulary begin and
    end with. Raises RequestError, in llama-server's words, for an unknown id."""
    ids: list[int] = []
    for i, part in enumerate(parts):
        if isinstance(part, str):
            ids += tokens.encode(part, add_special=i == 0)
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
