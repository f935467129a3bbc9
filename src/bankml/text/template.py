"""A model's chat template: messages to the prompt that `llama-server --jinja --reasoning off` (b11192) makes of
them."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bankml.errors import RequestError
from bankml.text.capabilities import Capabilities, capabilities
from bankml.text.jinja.budget import RenderBudget, TemplateError, probe_budget, shortened
from bankml.text.jinja.interpreter import Interpreter
from bankml.text.jinja.reader import read
from bankml.text.jinja.values import Value, from_json
from bankml.text.messages import Conversation, Message, adapted, with_fitting_content
from bankml.text.template_tokens import TemplateTokens

# Enough for a long conversation, and about a second at most: a step costs about a microsecond.
_STEPS, _STEPS_A_VALUE = 200_000, 200
_BYTES, _BYTES_A_BYTE = 48 << 20, 16
_LONGEST_PROBE = 64 << 10
_NO_TOKENS = TemplateTokens()


class ChatTemplate:
    """A compiled template. Thread-safe."""

    def __init__(self, source: str, tokens: TemplateTokens = _NO_TOKENS) -> None:
        """Raises Refused for a source that does not parse, is too long, or uses unsupported statements."""
        self.source = source
        self._tree = read(source)
        self._added = tokens
        self._tokens = {"bos_token": tokens.bos, "eos_token": tokens.eos}
        self._remembered: dict[str, Any] = {}

    @functools.cached_property
    def capabilities(self) -> Capabilities:
        """Which kinds of message the template supports, found by rendering probes at the first use."""
        return capabilities(self._tree)

    def shown_messages(self, conversation: Conversation) -> list[Message]:
        """The messages that the template shows: all but one that is continued. Raises RequestError."""
        messages = conversation.messages[:-1] if conversation.continues else conversation.messages
        return adapted(messages, self.source, self.capabilities)

    def shown(
        self,
        conversation: Conversation,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        now: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """`messages` with the tools and arguments of `conversation`, and `extra` variables. Raises RequestError."""
        variables: dict[str, Any] = {"preserve_reasoning": True, "enable_thinking": bool(conversation.enable_thinking)}
        if conversation.tools:
            variables["tools"] = conversation.tools
        variables |= {**conversation.template_arguments, **(extra or {})}
        return self.render(messages, add_generation_prompt, variables, now)

    def remembered(self, name: str, find: Callable[[], Any]) -> Any:
        """What `find` returns, which depends on the template alone; called at the first use of `name`."""
        if name not in self._remembered:
            self._remembered[name] = find()
        return self._remembered[name]

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool = True,
        variables: Mapping[str, Any] | None = None,
        now: float | None = None,
    ) -> str:
        """`messages` rendered unchanged, with `variables` (JSON values, by name), less what the tokenizer adds. Raises
        RequestError."""
        now = time.time() if now is None else now
        local = time.localtime(now)
        named = {"datetime": time.strftime("%b %d %Y", local), "date_string": time.strftime("%d %b %Y", local)}
        try:
            prompt = self._run(messages, add_generation_prompt, named | dict(variables or {}), now)
        except TemplateError as error:
            raise RequestError(f"the chat template cannot render these messages: {shortened(str(error))}") from None
        return self._added.without_added(prompt)

    def probe(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        enable_thinking: bool,
        tools: Sequence[Mapping[str, Any]],
    ) -> str | None:
        """`messages` as they are, for an analysis; None where the template cannot render them."""
        variables: dict[str, Any] = {"enable_thinking": enable_thinking}
        if tools:
            variables["tools"] = tools
        fitting = with_fitting_content(messages, self.capabilities)
        try:
            text = self._run(fitting, add_generation_prompt, variables, time.time(), probe_budget())
        except TemplateError:
            return None
        return text if len(text) <= _LONGEST_PROBE else None

    def _run(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
        now: float,
        budget: RenderBudget | None = None,
    ) -> str:
        given = from_json({"messages": list(messages), **self._tokens, **variables})
        scope = {name.decode(): value for name, value in given.items()}
        if add_generation_prompt:
            scope["add_generation_prompt"] = True
        _apply_options(scope)
        budget = budget or _budget_of(given)
        return Interpreter(budget, now).render(self._tree, scope).decode("utf-8", "replace")


def _apply_options(scope: dict[str, Value]) -> None:
    """Two options are known to templates by several names."""
    keep, effort = scope.get("preserve_reasoning"), scope.get("reasoning_effort")
    if isinstance(keep, bool):
        scope["preserve_thinking"] = keep
        for name in ("clear_thinking", "truncate_history_thinking", "drop_thinking"):
            scope[name] = not keep
    if isinstance(effort, bytes) and effort:
        scope["reasoning_strength"] = effort


def _budget_of(given: Value) -> RenderBudget:
    n_values, n_bytes = _size(given)
    return RenderBudget(_STEPS + _STEPS_A_VALUE * n_values, _BYTES + _BYTES_A_BYTE * n_bytes)


def _size(value: Value) -> tuple[int, int]:
    """The number of values in `value`, and their bytes of text."""
    n_values, n_bytes, pending = 0, 0, [value]
    while pending:
        item = pending.pop()
        n_values += 1
        if isinstance(item, bytes):
            n_bytes += len(item)
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, dict):
            pending.extend(item.values())
    return n_values, n_bytes
