"""What an answer's format is made for: a template, a conversation, and what is asked of the answer."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bankml.answers.peg.nodes import StrictSchema
from bankml.grammar.json_schema import SchemaBudget, SchemaDocument
from bankml.grammar.json_schema.nodes import Object, Property
from bankml.grammar.json_schema.reader import read_schema
from bankml.text.markers import common_prefix_size
from bankml.text.messages import Conversation, Message, content_text, is_empty
from bankml.text.template import ChatTemplate

NO_PARAMETERS = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class ToolFunction:
    """A tool: its name, and the schema of its parameters as JSON and read."""

    name: str
    parameters: Mapping[str, Any]
    document: SchemaDocument

    @property
    def properties(self) -> Sequence[Property]:
        root = self.document.root
        return root.properties if isinstance(root, Object) else ()

    def of(self, node: Property) -> SchemaDocument:
        """The document of one property's schema."""
        return SchemaDocument(node.schema, self.document.targets)


@dataclass(frozen=True)
class FormatRequest:
    """`schema` is what the answer's content has to be a value of, None for nothing; `strict`: every keyword of it is
    enforced or refused. `now` is in seconds since the
    epoch, None for the present."""

    template: ChatTemplate
    conversation: Conversation
    schema: Any = None
    strict: bool = False
    now: float | None = None

    @property
    def source(self) -> str:
        return self.template.source

    @property
    def has_tools(self) -> bool:
        return bool(self.conversation.tools)

    @property
    def calls_tools(self) -> bool:
        """The answer may call tools."""
        return self.has_tools and self.conversation.tool_choice != "none"

    @property
    def requires_call(self) -> bool:
        return self.conversation.tool_choice == "required"

    @property
    def parallel(self) -> bool:
        """Several calls are allowed."""
        asked = self.conversation.parallel_tool_calls
        return self.template.capabilities.parallel_tool_calls if asked is None else asked

    @property
    def most_calls(self) -> int | None:
        return None if self.parallel else 1

    @property
    def extracts_reasoning(self) -> bool:
        return self.conversation.reasoning_format != "none"

    @property
    def has_schema(self) -> bool:
        return self.schema is not None

    @cached_property
    def answer_schema(self) -> SchemaDocument | StrictSchema:
        """Raises SchemaError."""
        return StrictSchema(self.schema) if self.strict else read_schema(self.schema, SchemaBudget())

    @cached_property
    def functions(self) -> Sequence[ToolFunction]:
        """Those that the answer may call. Raises SchemaError for parameters that are no schema."""
        called = self.conversation.called
        tools = [tool["function"] for tool in self.conversation.tools]
        return [_function(one) for one in tools if not called or one["name"] == called]

    # ---- the prompt

    @property
    def continued(self) -> Message | None:
        """The message that the answer continues."""
        if not self.conversation.continues or is_empty(self.conversation.messages[-1]):
            return None
        return self.conversation.messages[-1]

    @cached_property
    def messages(self) -> Sequence[Message]:
        """The messages that the template shows: all but one that is continued."""
        return self.template.shown_messages(self.conversation)

    def prompt(self, messages: Sequence[Message] | None = None, extra: Mapping[str, Any] | None = None) -> str:
        asks = self.conversation.add_generation_prompt and not self.conversation.continues
        return self._render(messages, extra, asks)

    def generation_prompt(
        self, messages: Sequence[Message] | None = None, extra: Mapping[str, Any] | None = None
    ) -> str:
        """What the template appends to ask for an answer."""
        without, asking = self._render(messages, extra, False), self._render(messages, extra, True)
        return asking[common_prefix_size(without, asking) :]

    def _render(self, messages: Sequence[Message] | None, extra: Mapping[str, Any] | None, asks: bool) -> str:
        """Rendered once, however often it is asked for."""
        shown = self.messages if messages is None else messages
        key = (id(shown), id(extra), asks)
        if key not in self._rendered:
            self._rendered[key] = self.template.shown(self.conversation, shown, asks, self._moment, extra)
        return self._rendered[key]

    @cached_property
    def _rendered(self) -> dict[tuple[int, int, bool], str]:
        return {}

    @cached_property
    def _moment(self) -> float:
        return time.time() if self.now is None else self.now

    def continuation(self, opening: str, thought: str, between: str = "") -> str:
        """The beginning of a continued answer: `opening`, the thought behind `thought`, `between`, the content."""
        message = self.continued
        if message is None:
            return ""
        text = opening + thought + str(message.get("reasoning_content", "")) if thought else opening
        return text + between + content_text(message) if self.conversation.continues == "content" else text

    def continuation_of_content(self, opening: str) -> str:
        """The beginning of a continued answer that has no thought."""
        return opening + content_text(self.continued) if self.continued is not None else ""


def _function(function: Mapping[str, Any]) -> ToolFunction:
    parameters = function.get("parameters") or NO_PARAMETERS
    return ToolFunction(function["name"], parameters, read_schema(parameters, SchemaBudget()))
