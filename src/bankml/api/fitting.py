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
    n_ctx, left_out = min(n_ctx, resident.n_ctx), 0
    if truncate:
        body, left_out = _without_excess(body, n_ctx)
        if not _fits(resident.prompt(body).text, resident, n_ctx):
            body, more = _shortened(body, resident, n_ctx)
            left_out += more
    return Fitted(limited(generate(body), n_ctx), left_out)


def limited(generation: Generation, n_ctx: int) -> Generation:
    """The same, ended by a full context of `n_ctx` tokens. Raises ContextExceeded where the prompt does not fit it."""
    job = generation.job
    fits(len(job.prompt), n_ctx)
    room = n_ctx - len(job.prompt)
    if UNLIMITED < job.max_tokens <= room:
        return generation
    return replace(generation, job=replace(job, max_tokens=room))


def _without_excess(body: Body, n_ctx: int) -> tuple[Body, int]:
    """`body` without its oldest messages beyond `n_ctx`, and how many those are: each takes a token at least, so that
    there is no room for more, and rendering them could take long."""
    messages = body.get("messages")
    if not isinstance(messages, list) or len(messages) <= n_ctx or not all(isinstance(m, dict) for m in messages):
        return body, 0
    excess = min(len(messages) - n_ctx, len(_oldest(messages)))
    return _without(body, excess), excess


def _shortened(body: Body, resident: Resident, n_ctx: int) -> tuple[Body, int]:
    """`body` with as few of its oldest messages left out as must be, and how many those are.

    The prompt grows with every message, so the number is found by halving. Where the template refuses the messages
    that are left (some want the roles to take turns), more are left out.
    """
    most = len(_oldest(body["messages"]))
    least = min(1, most)
    while least < most:
        middle = (least + most) // 2
        if _has_room(_without(body, middle), resident, n_ctx):
            most = middle
        else:
            least = middle + 1
    return _without(body, most), most


def _oldest(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Where the messages stand that may be left out, the oldest first."""
    return [i for i, message in enumerate(messages[:-1]) if message.get("role") not in ("system", "developer")]


def _without(body: Body, n: int) -> Body:
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    gone = set(_oldest(messages)[:n])
    return {**body, "messages": [message for i, message in enumerate(messages) if i not in gone]}


def _has_room(body: Body, resident: Resident, n_ctx: int) -> bool:
    try:
        return _fits(resident.prompt(body).text, resident, n_ctx)
    except RequestError:
        return False


def _fits(prompt: str, resident: Resident, n_ctx: int) -> bool:
    """Whether a prompt leaves room for a token. One that is longer than so many of the longest tokens is not cut up."""
    if len(prompt) > n_ctx * resident.tokens.longest:
        return False
    return len(resident.tokens.encode(prompt)) < n_ctx
