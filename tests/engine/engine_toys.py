"""A model, a vocabulary and a sampler small enough to reason about: one token a byte, and one that ends the answer."""

import codecs
import hashlib
import types

import numpy as np

from bankml.model.span import Span

END, N_VOCAB = 256, 257


class ByteVocabulary:
    n_vocab = N_VOCAB
    bos_text = ""
    eos_text = "<b>"
    end_of_generation = frozenset({END})
    control_texts = ("<end>",)
    longest = len("<end>")

    begin = ()

    def text(self, tokens):
        return b"".join(map(self.spelling, tokens)).decode("utf-8", "replace")

    def added(self, tokens):
        return tokens

    def encode(self, text, parse_special=True, add_special=False):
        parts = text.split("<end>") if parse_special else [text]
        tokens = list(parts[0].encode())
        for part in parts[1:]:
            tokens += [END, *part.encode()]
        return tokens

    def piece(self, token):
        return b"" if token == END else bytes([token])

    def spelling(self, token):
        return b"<end>" if token == END else bytes([token])

    def is_end_of_generation(self, token):
        return token == END


def hashing(context):
    """Depends on every token of the context, so a wrong one in the cache changes the answer. Never ends by itself."""
    digest = hashlib.sha256(repr(context).encode()).digest()
    return 97 + digest[0] % 26


def saying(answer, after=b"A:"):
    """Says `answer` after the last `after`, then ends."""
    data = answer.encode() if isinstance(answer, str) else answer

    def next_token(context):
        text = bytes(t for t in context if t < 256)
        said = len(text) - text.rindex(after) - len(after)
        return data[said] if said < len(data) else END

    return next_token


class ToyCells:
    """The tokens of one sequence in place of their keys and values."""

    cell_bytes = 1
    cache_type = "f16"
    window = 0

    def __init__(self):
        self.tokens = []


class ToyModel:
    """Keeps tokens in its cells, so that only what was computed in order can be answered from."""

    n_vocab = N_VOCAB

    def __init__(self, next_token=hashing, n_ctx=4096):
        self.n_ctx = n_ctx
        self.next_token = next_token
        self.cells = []
        self.calls = []
        self.together = []
        self.before = lambda: None
        self.between = lambda: None

    @property
    def cache(self):
        """The tokens of the sequence that was begun last."""
        return self.cells[-1].tokens

    def new_cells(self):
        self.cells.append(ToyCells())
        return self.cells[-1]

    def forward(self, spans, logits, checkpoint=lambda: None):
        self.before()
        self.between()
        checkpoint()
        assert len(spans) == 1 or all(len(span.tokens) == 1 for span in spans)
        assert len({id(span.cells) for span in spans}) == len(spans)
        self.together.append(len(spans))
        found = np.full((len(spans), N_VOCAB), 0 if logits else np.nan, np.float32)
        for row, span in zip(found, spans, strict=True):
            cache, end = span.cells.tokens, span.position + len(span.tokens)
            assert 1 <= len(span.tokens) <= 512 and span.position <= len(cache) and end <= self.n_ctx
            cache[span.position :] = span.tokens
            self.calls.append((span.position, len(span.tokens), logits))
            if logits:
                row[self.next_token(tuple(cache))] = 1
        return found if logits else None

    def score(self, span, rows, checkpoint=lambda: None):
        """Rows that make the token that comes next likely, in parts of three."""
        for at in range(0, len(span.tokens), 3):
            part = span.tokens[at : at + 3]
            spans = [Span([token], span.position + at + i, span.cells) for i, token in enumerate(part)]
            rows(span.position + at, np.concatenate([self.forward([one], True) for one in spans]))

    def close(self):
        self.cells.clear()


class GreedySampler:
    def __init__(self):
        self.accepted = []

    def accept_all(self, tokens):
        self.accepted += tokens

    def accept(self, token):
        self.accepted.append(token)

    def sample(self, logits):
        assert not np.isnan(logits).any(), "sampled without logits"
        return int(np.argmax(logits))

    def probabilities(self, logits, token):
        return None

    seed = None
    settings = types.MappingProxyType({"temperature": 0.0})


class ToyPieces:
    """The text room's TextStream, written plainly: keeps all text, releases what no stop string can still change."""

    def __init__(self, stops=(), chat=False, begun=False):
        self._chat = chat
        self._stops = [s for s in stops]
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""
        self.stop_word = None
        self.released = self._partial = b""

    @property
    def stopped(self):
        return self.stop_word is not None

    @property
    def at_boundary(self):
        return not self._partial

    def push(self, data):
        text = self._push(data)
        self.released = text.encode()
        return text

    def _push(self, data):
        text = self._decode(data)
        self._partial = self._partial + data if not text else b""
        if not text:
            return ""
        self._held += text
        found = [(at, s) for at, s in ((self._held.find(s), s) for s in self._stops) if at >= 0]
        if found:
            at, self.stop_word = min(found)
            out, self._held = self._held[:at], ""
            return out
        keep = max((n for s in self._stops for n in range(len(s)) if n and self._held.endswith(s[:n])), default=0)
        out, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return out

    def finish(self):
        self.released, text = self._held.encode(), self._held
        return text + ("" if self._chat or self.at_boundary else "\ufffd")
