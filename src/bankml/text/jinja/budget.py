"""The limits of one rendering. A template comes with the model file, so it is untrusted code."""

from dataclasses import dataclass

STEP_BYTES = 16
"""Bytes that an interpreted loop over a string visits in about the time of a step."""

COPIES = 8
"""How often text may be copied for the cost of making it."""


LONGEST_MESSAGE = 1000


class TemplateError(Exception):
    """The template cannot be rendered with these messages: it raised an exception, or an operation failed."""


def shortened(message: str) -> str:
    """A message of a template or its parser, shortened: it may contain the template's own text."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "..."


@dataclass
class RenderBudget:
    """Remaining amounts. `steps` are evaluated nodes and list items (about a microsecond each); `bytes` are bytes of
    text made or searched. No string may be longer than `longest`."""

    steps: int
    bytes: int
    longest: int = 32 << 20

    def step(self, count: int = 1) -> None:
        self.steps -= count
        if self.steps < 0:
            raise TemplateError("the template takes too many steps")

    def text(self, size: int) -> None:
        """Must be called before a string of `size` bytes is made or searched."""
        self.bytes -= size
        if size > self.longest or self.bytes < 0:
            raise TemplateError("the template makes too much text")


def joined(parts: list[bytes], budget: RenderBudget) -> bytes:
    """`parts`, which are counted already, joined: copying is cheap, but every level of nesting copies again."""
    budget.text(sum(map(len, parts)) // COPIES if len(parts) > 1 else 0)
    return b"".join(parts)


def probe_budget() -> RenderBudget:
    """The budget of a probe: messages of a few words."""
    return RenderBudget(20_000, 4 << 20)
