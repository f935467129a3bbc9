"""What one rendering may cost. A template comes with the model file, so nobody here has read it before it runs."""

from dataclasses import dataclass


class TemplateError(Exception):
    """The template cannot be rendered with these messages: it says so itself, or it does what cannot be done."""


@dataclass
class Budget:
    """Counts down. `steps` are evaluated nodes and list items (about a microsecond each); `bytes` are bytes of text
    made or searched. No string may be longer than `longest`."""

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
