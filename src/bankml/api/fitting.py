"""A conversation that exceeds its context: it loses its oldest messages, as in Ollama."""

from collections.abc import Sequence
from dataclasses import replace

from bankml.answers.format import AnswerFormat
from bankml.errors import RequestError
from bankml.grammar.constraint import NO_CONSTRAINT, ConstraintSpec
from bankml.library.resident import Resident
from bankml.text.messages import Conversation, Message


def truncated(
    conversation: Conversation, resident: Resident, n_ctx: int, spec: ConstraintSpec = NO_CONSTRAINT
) -> tuple[AnswerFormat, int]:
    """The prompt and the answer's format of `conversation` without as few of its oldest messages as it takes to leave
    room for a token in a context of `n_ctx`, and how many those are. The last message and the system messages stay."""
    conversation, left_out = _without_excess(conversation, n_ctx)
    form = resident.answer_format(conversation, spec)
    if _fits(form, resident, n_ctx):
        return form, left_out
    conversation, more = _shortened(conversation, resident, n_ctx)
    return resident.answer_format(conversation, spec), left_out + more


def _without_excess(conversation: Conversation, n_ctx: int) -> tuple[Conversation, int]:
    """Without the oldest messages beyond `n_ctx`, and how many those are: each takes a token at least, so there is no
    room for more, and rendering them could take long."""
    messages = conversation.messages
    if len(messages) <= n_ctx:
        return conversation, 0
    excess = min(len(messages) - n_ctx, len(_oldest(messages)))
    return _without(conversation, excess), excess


def _shortened(conversation: Conversation, resident: Resident, n_ctx: int) -> tuple[Conversation, int]:
    """Found by halving, since the prompt grows with every message. Where the template rejects the messages that are
    left (some require the roles to alternate), more are left out."""
    most = len(_oldest(conversation.messages))
    least = min(1, most)
    while least < most:
        middle = (least + most) // 2
        if _has_room(_without(conversation, middle), resident, n_ctx):
            most = middle
        else:
            least = middle + 1
    return _without(conversation, most), most


def _oldest(messages: Sequence[Message]) -> list[int]:
    """The indices of the messages that may be left out, the oldest first."""
    return [i for i, message in enumerate(messages[:-1]) if message["role"] not in ("system", "developer")]


def _without(conversation: Conversation, n: int) -> Conversation:
    dropped = set(_oldest(conversation.messages)[:n])
    kept = [message for i, message in enumerate(conversation.messages) if i not in dropped]
    return replace(conversation, messages=kept)


def _has_room(conversation: Conversation, resident: Resident, n_ctx: int) -> bool:
    try:
        return _fits(resident.answer_format(conversation), resident, n_ctx)
    except RequestError:
        return False


def _fits(form: AnswerFormat, resident: Resident, n_ctx: int) -> bool:
    """Whether a prompt leaves room for a token. One longer than that many of the longest tokens is not tokenized."""
    if len(form.prompt) > n_ctx * resident.tokens.longest:
        return False
    return len(resident.tokenize(form)) < n_ctx
