"""A model with the cells of one sequence, for tests of the forward pass alone."""

from bankml.model.model import Model
from bankml.model.span import Span


class LoneSequence:
    """`logits` is float32 [n_vocab], of the last `forward` with logits."""

    def __init__(self, model):
        self.model = model
        self.cache = model.new_cells()
        self.logits = None

    @classmethod
    def open(cls, *arguments, **more):
        return cls(Model.open(*arguments, **more))

    def forward(self, tokens, position, logits, checkpoint=lambda: None):
        found = self.model.forward([Span(list(tokens), position, self.cache)], logits, checkpoint)
        if logits:
            self.logits = found[0]

    def close(self):
        self.model.close()
        del self.cache, self.logits

    def __getattr__(self, name):
        return getattr(self.model if name in ("config", "n_ctx", "new_cells") else self.cache, name)
