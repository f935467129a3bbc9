"""What is being computed: the spans of one forward pass, as the operations need to know them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bankml.model.span import Span


def _no_checkpoint() -> None:
    pass


class Batch:
    """The spans whose rows stand below each other in the buffers; all have `length` tokens.

    Which kernels compute a row, and so its bits, depends on the length of its own span alone. Operations call
    `checkpoint` when they are done: a forward pass of single tokens may be nested there, so they keep nothing in
    memory that the next operation relies on, other than the buffers that they were given.
    """

    def __init__(self) -> None:
        self.spans: Sequence[Span] = ()
        self.length = 0
        self.checkpoint: Callable[[], None] = _no_checkpoint

    @contextmanager
    def of(self, spans: Sequence[Span], checkpoint: Callable[[], None]) -> Iterator[None]:
        """`spans` are what is computed in the `with` block; afterwards again those of before."""
        before = self.spans, self.length, self.checkpoint
        self.spans, self.length, self.checkpoint = spans, len(spans[0].tokens), checkpoint
        try:
            yield
        finally:
            self.spans, self.length, self.checkpoint = before

    @contextmanager
    def of_length(self, rows: int) -> Iterator[None]:
        """Only `rows` rows of each span go on, in the `with` block, as llama.cpp's inp_out_ids have it."""
        length, self.length = self.length, rows
        try:
            yield
        finally:
            self.length = length
