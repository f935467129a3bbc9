"""Making a conversation fit a context: it loses its oldest messages, as in Ollama."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bankml.engine.completion import fits
from bankml.errors import RequestError

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Fitted:
    """The messages that are left, and how many were left out."""

    messages: Sequence[Message]
    left_out: int = 0


def fitted(messages: Sequence[Message], n_tokens: Callable[[Sequence[Message]], int], n_ctx: int) -> Fitted:
    """The end of `messages`, as long as its prompt leaves room for a token in a context of `n_ctx`.

    The last message stays whatever its length, and so do the system messages, in their places. `n_tokens` counts the
    tokens of the prompt that messages make; where it raises RequestError for fewer than all of them (a template that
    wants the roles to take turns), more are left out.
    """
    if n_tokens(messages) < n_ctx:
        return Fitted(messages)
    # What is dropped is the first `n` that are neither the last nor a system message; more dropped, fewer tokens.
    droppable = [i for i, message in enumerate(messages[:-1]) if message.get("role") != "system"]
    least, most = 1, len(droppable)
    while least < most:
        middle = (least + most) // 2
        if _fits(_without(messages, droppable[:middle]), n_tokens, n_ctx):
            most = middle
        else:
            least = middle + 1
    return Fitted(_without(messages, droppable[:most]), most)


def check_fit(n_prompt_tokens: int, n_ctx: int, longest: int) -> None:
    """Raises RequestError for a `num_ctx` beyond `longest`, the server's context, and ContextExceeded for a prompt of
    `n_ctx` tokens or more."""
    if n_ctx > longest:
        raise RequestError(f"Field 'options.num_ctx': this server's context has {longest} tokens (--ctx), but got {n_ctx}")
    fits(n_prompt_tokens, n_ctx)


def _without(messages: Sequence[Message], dropped: Sequence[int]) -> Sequence[Message]:
    gone = set(dropped)
    return [message for i, message in enumerate(messages) if i not in gone]


def _fits(messages: Sequence[Message], n_tokens: Callable[[Sequence[Message]], int], n_ctx: int) -> bool:
    try:
        return n_tokens(messages) < n_ctx
    except RequestError:
        return False
