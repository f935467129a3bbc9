"""The format of slot files: tokens with their keys and values, a sha256 of them, and the server's HMAC of that.

    8 bytes  magic, the format's version in its last        4  KV heads
    32       sha256 of the model's file                     4  bytes of one row of a head
    4        context in tokens                              8  type of the cache, `f16` or `q8_0`, zero-padded
    4        layers                                         4  tokens
                                                            4  spans of the trace
    4 a token; 12 a span: position, rows, kept; K [layer][head][token][row], then V the same
    32 bytes: the sha256 of all before it; 32 bytes: the HMAC-SHA256 of that sha256 under the slot folder's secret

Integers are 32 bits, little-endian. The context is informative: keys and values do not depend on it. Keys and values
decide the answers, and a sha256 can be computed by anybody, so a file is accepted only with an HMAC of the own secret.
The trace says how the keys and values were computed (engine.trace), so that answers from a file can be replayed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as hmac_digest
from io import BufferedReader
from typing import BinaryIO

import numpy as np

from bankml.engine.parts import Cells
from bankml.engine.trace import ComputedSpan, checked_trace

MAGIC = b"bankMLs\x03"
HEAD = struct.Struct("<8s32sIIII8sII")
SPAN_NUMBERS = 3
HASH_BYTES = 32
TAIL_BYTES = 2 * HASH_BYTES
PIECE = 1 << 20  # bytes hashed at a time


class NotRestored(Exception):
    """The reason why a slot file was refused, as a client may read it."""


class NotASlotFile(NotRestored):
    """The file does not begin like a slot file."""


@dataclass(frozen=True)
class Origin:
    """What keys and values belong to: the model by its sha256 (hex), and the layout of its cache."""

    model_sha256: str
    n_ctx: int
    layers: int
    kv_heads: int
    row_bytes: int
    cache_type: str

    @classmethod
    def of(cls, cells: Cells, n_ctx: int, model_sha256: str) -> Origin:
        k = cells.view(0).k
        layers, kv_heads, _, row = k.shape
        return cls(model_sha256, n_ctx, layers, kv_heads, row * k.itemsize, cells.cache_type)

    def head(self, n_tokens: int, n_spans: int) -> bytes:
        return HEAD.pack(
            MAGIC, bytes.fromhex(self.model_sha256), self.n_ctx, self.layers, self.kv_heads, self.row_bytes,
            self.cache_type.encode(), n_tokens, n_spans,
        )  # fmt: skip

    def file_bytes(self, n_tokens: int, n_spans: int) -> int:
        """The size of a file with `n_tokens` tokens and `n_spans` spans."""
        a_token = 4 + 2 * self.layers * self.kv_heads * self.row_bytes
        return HEAD.size + n_tokens * a_token + n_spans * 4 * SPAN_NUMBERS + TAIL_BYTES


@dataclass(frozen=True)
class SlotContent:
    """The tokens of a slot, and how their cells were computed."""

    tokens: Sequence[int]
    trace: Sequence[ComputedSpan]


@dataclass(frozen=True)
class Restored:
    """What a slot file has, and the sha256 of its content (hex) that it ends with."""

    content: SlotContent
    sha256: str


def write(out: BinaryIO, origin: Origin, content: SlotContent, cells: Cells, secret: bytes) -> int:
    """Writes `content` and its cells directly from memory; returns the bytes written."""
    digest = sha256()
    n_tokens, n_spans = len(content.tokens), len(content.trace)
    spans = [(span.position, span.rows, span.kept) for span in content.trace]
    head = (origin.head(n_tokens, n_spans), np.array(content.tokens, "<i4").tobytes(), np.array(spans, "<i4").tobytes())
    for part in (*[memoryview(one) for one in head], *cells.view(n_tokens).pieces()):
        for at in range(0, len(part), PIECE):
            digest.update(part[at : at + PIECE])
            out.write(part[at : at + PIECE])
    out.write(digest.digest() + _hmac(secret, digest.digest()))
    return origin.file_bytes(n_tokens, n_spans)


def read(source: BufferedReader, origin: Origin, cells: Cells, n_vocab: int, secret: bytes | None) -> Restored:
    """Reads a file's cells into `cells`.

    Raises NotRestored for a file of another model or another layout, one that is damaged, cut short or extended, one
    with more tokens than the context, and one that was not written with `secret`, where that is not None. The content
    of the first cells is then undefined.
    """
    head = source.read(HEAD.size)
    n_tokens, n_spans = _checked(head, origin, os.fstat(source.fileno()).st_size)
    digest = sha256(head)
    packed, spans = bytearray(n_tokens * 4), bytearray(n_spans * 4 * SPAN_NUMBERS)
    for part in (memoryview(packed), memoryview(spans), *cells.view(n_tokens).pieces()):
        for at in range(0, len(part), PIECE):
            piece = part[at : at + PIECE]
            if source.readinto(piece) != len(piece):
                raise NotRestored("the file was truncated while it was read")
            digest.update(piece)
    tail = source.read(TAIL_BYTES + 1)
    if tail[:HASH_BYTES] != digest.digest() or len(tail) != TAIL_BYTES:
        raise NotRestored("the file is damaged: its sha256 is not that of its content")
    if secret is not None and not compare_digest(tail[HASH_BYTES:], _hmac(secret, digest.digest())):
        raise NotRestored("the file was changed, or written by another server: --slots-trust accepts such files")
    tokens: list[int] = np.frombuffer(packed, "<i4").tolist()
    if not all(0 <= token < n_vocab for token in tokens):
        raise NotRestored("the file has tokens that the model does not have")
    return Restored(SlotContent(tokens, _trace(spans, n_tokens)), digest.hexdigest())


def _trace(packed: bytearray, n_tokens: int) -> tuple[ComputedSpan, ...]:
    rows = np.frombuffer(packed, "<i4").reshape(-1, SPAN_NUMBERS).tolist()
    try:
        return checked_trace([ComputedSpan(*row) for row in rows], n_tokens).spans
    except ValueError as error:
        raise NotRestored(f"the file does not say how its tokens were computed: {error}") from None


def _hmac(secret: bytes, digest: bytes) -> bytes:
    return hmac_digest(secret, digest, "sha256")


def _checked(head: bytes, origin: Origin, size: int) -> tuple[int, int]:
    """Checks the head against `origin` and `size`; returns the numbers of tokens and of spans."""
    if len(head) < HEAD.size or not head.startswith(MAGIC[:-1]):
        raise NotASlotFile
    magic, sha, n_ctx, *layout, kind, n_tokens, n_spans = HEAD.unpack(head)
    if magic != MAGIC:
        raise NotRestored("the file is of another version of the format")
    if sha.hex() != origin.model_sha256:
        raise NotRestored(f"the file is of another model, with the sha256 {sha.hex()}")
    cache_type = kind.rstrip(b"\0").decode("ascii", "replace")
    if cache_type != origin.cache_type:
        raise NotRestored(f"the file's KV cache is {cache_type}, this server's is {origin.cache_type}")
    if layout != [origin.layers, origin.kv_heads, origin.row_bytes]:
        raise NotRestored("the file's KV cache has another shape than the model's")
    if n_tokens > origin.n_ctx:
        raise NotRestored(f"its {n_tokens} tokens (of a context of {n_ctx}) do not fit the context of {origin.n_ctx}")
    if n_spans > n_tokens:
        raise NotRestored(f"the file has {n_spans} spans of {n_tokens} tokens")
    if size != (due := origin.file_bytes(n_tokens, n_spans)):
        raise NotRestored(f"the file has {size} bytes, but {n_tokens} tokens take {due}")
    return int(n_tokens), int(n_spans)
