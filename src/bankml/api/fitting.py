"""Making a conversation fit a context: it loses its oldest messages, as in Ollama."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bankml.api.answering import Generation
from bankml.engine.completion import UNLIMITED, fits
from bankml.errors import RequestError
from bankml.library.resident import Resident

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Fitted:
    """An answer to a conversation, and how many of its messages were left out of the prompt."""

    generation: Generation
    left_out: int = 0


def fitted(
    body: Body, resident: Resident, n_ctx: int, generate: Callable[[Body], Generation], truncate: bool = True
) -> Fitted:
    """What the body of a `/v1/chat/completions` request asks for, as `generate` reads it, in a context of `n_ctx`.

    A conversation whose prompt leaves no room for a token loses its oldest messages, but neither the last nor the
    system ones, unless `truncate` is false. The answer ends where the context is full. Raises ContextExceeded for what
    does not fit even so, and what `generate` raises.
    """
    generation = generate(body)
    left_out = 0
    if len(generation.job.prompt) >= n_ctx and truncate:
        body, left_out = _shortened(body, resident, n_ctx)
        generation = generate(body)
    return Fitted(limited(generation, n_ctx), left_out)


def limited(generation: Generation, n_ctx: int) -> Generation:
    """The same, ended by a full context of `n_ctx` tokens. Raises ContextExceeded where the prompt does not fit it."""
    job = generation.job
    fits(len(job.prompt), n_ctx)
    room = n_ctx - len(job.prompt)
    if UNLIMITED < job.max_tokens <= room:
        return generation
    return replace(generation, job=replace(job, max_tokens=room))


def _shortened(body: Body, resident: Resident, n_ctx: int) -> tuple[Body, int]:
    """`body` with as few of its oldest messages left out as must be, and how many those are.

    The prompt grows with every message, so the number is found by halving. Where the template refuses the messages
    that are left (some want the roles to take turns), more are left out.
    """
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    oldest = [i for i, message in enumerate(messages[:-1]) if message.get("role") not in ("system", "developer")]

    def without(n: int) -> Body:
        gone = set(oldest[:n])
        return {**body, "messages": [message for i, message in enumerate(messages) if i not in gone]}

    least, most = min(1, len(oldest)), len(oldest)
    while least < most:
        middle = (least + most) // 2
        if _has_room(without(middle), resident, n_ctx):
            most = middle
        else:
            least = middle + 1
    return without(most), most


def _has_room(body: Body, resident: Resident, n_ctx: int) -> bool:
    try:
        return len(resident.tokens.encode(resident.prompt(body).text)) < n_ctx
    except RequestError:
        return False
