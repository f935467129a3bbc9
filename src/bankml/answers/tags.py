"""What parts of an answer mean: the tags of a grammar's nodes, and parts that have them."""

from bankml.answers.peg.builder import Builder, Part

REASONING, CONTENT = "reasoning", "content"
TOOL, TOOL_OPEN, TOOL_CLOSE = "tool", "tool-open", "tool-close"
TOOL_ID, TOOL_NAME, TOOL_ARGUMENTS = "tool-id", "tool-name", "tool-args"
ARGUMENT, ARGUMENT_OPEN, ARGUMENT_CLOSE = "tool-arg", "tool-arg-open", "tool-arg-close"
ARGUMENT_NAME, VALUE, STRING_VALUE = "tool-arg-name", "tool-arg-value", "tool-arg-string-value"
OBJECT, ARRAY, ITEM = "tool-arg-object", "tool-arg-array", "tool-arg-item"


class AnswerBuilder(Builder):
    """A Builder that knows the parts of an answer."""

    def reasoning(self, part: Part) -> Part:
        return self.tag(REASONING, part)

    def content(self, part: Part) -> Part:
        return self.tag(CONTENT, part)

    def tool(self, part: Part) -> Part:
        return self.tag(TOOL, part)

    def tool_open(self, part: Part) -> Part:
        return self.atomic_tag(TOOL_OPEN, part)

    def tool_close(self, part: Part) -> Part:
        return self.atomic_tag(TOOL_CLOSE, part)

    def tool_id(self, part: Part) -> Part:
        return self.atomic_tag(TOOL_ID, part)

    def tool_name(self, part: Part) -> Part:
        return self.atomic_tag(TOOL_NAME, part)

    def tool_arguments(self, part: Part) -> Part:
        """The arguments as one JSON object, or in tags."""
        return self.tag(TOOL_ARGUMENTS, part)

    def argument(self, part: Part) -> Part:
        return self.tag(ARGUMENT, part)

    def argument_open(self, part: Part) -> Part:
        return self.atomic_tag(ARGUMENT_OPEN, part)

    def argument_close(self, part: Part) -> Part:
        return self.atomic_tag(ARGUMENT_CLOSE, part)

    def argument_name(self, part: Part) -> Part:
        return self.atomic_tag(ARGUMENT_NAME, part)

    def value(self, part: Part) -> Part:
        """A value in JSON, or as Python writes it."""
        return self.tag(VALUE, part)

    def string_value(self, part: Part) -> Part:
        """A value that is text as it stands."""
        return self.tag(STRING_VALUE, part)

    def up_to(self, text: str, mark: str) -> Part:
        """`text` before `mark`, empty for an empty text."""
        if not text:
            return self.empty()
        return self.literal(text.partition(mark)[0] if mark else text)

    def mark(self, mark: str) -> Part:
        """A mark whose white space, before and behind, may be left out."""

        def make() -> int:
            inner = mark.strip(" \t\n\v\f\r")
            before, behind = (
                (mark, "") if not inner else (mark[: mark.find(inner)], mark[mark.find(inner) + len(inner) :])
            )
            made = self.empty()
            for one in before:
                made = self.let(self._appended(made, self.optional(self.literal(one))))
            made = self.let(self._appended(made, self.literal(inner)))
            for one in behind:
                made = self.let(self._appended(made, self.optional(self.literal(one))))
            return made.id

        return Part(self, make)

    def _appended(self, first: Part, second: Part) -> Part:
        first.id  # noqa: B018 (made before the second)
        return first + second
