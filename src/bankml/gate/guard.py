"""The guard: judges a file by its header alone, before any weight is read.

`play`, `refuse` with every reason found, or `need_more` with the number of header bytes that a truncated file lacks.
"""

import os
import re
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Literal

from bankml.errors import BankmlError, Refused, Truncated
from bankml.files import open_regular
from bankml.gguf.block_types import BLOCK_TYPES
from bankml.gguf.header import MAX_ENTRIES, BadHeader, Header, read_header_from
from bankml.gguf.values import Value, describe, shown

Engine = Literal["mainline", "prism"]

MAX_UINT64 = (1 << 64) - 1
F16_BYTES = 2
MAX_NAME = 1024  # characters of a model's or an architecture's name
SPLIT_COUNT = "split.count"  # llama.cpp loads the other parts of such a file by their names
# The second Bonsai generation needs PrismML's fork whatever its tensor types; one of its names says so.
FORK_NAME = re.compile(r"bonsai[\s_-]*2|prism-fork-required", re.IGNORECASE)


@dataclass(frozen=True)
class Verdict:
    """`header` is None when it could not be read to its end; `kv_bytes` is None when the header does not say enough."""

    kind: Literal["play", "refuse", "need_more"]
    name: str
    engine: Engine
    reasons: tuple[str, ...] = ()
    needs: int | None = None
    header: Header | None = None
    kv_bytes: int | None = None

    def error(self) -> BankmlError:
        """The error for a verdict other than `play`."""
        if self.kind == "need_more":
            needs = self.needs or 0
            return Truncated(f"{self.name}: guard needs {needs} header bytes: file truncated", needs)
        return Refused(f"{self.name}: guard refused: {'; '.join(self.reasons)}")

    def as_json(self) -> dict[str, object]:
        """The verdict for `--json`; fields of a header that could not be read are null."""
        header = self.header
        report: dict[str, object] = {
            "verdict": self.kind,
            "engine": self.engine,
            "gguf_version": header.version if header else None,
            "arch": _text(header, "general.architecture"),
            "name": _text(header, "general.name"),
            "tensors": len(header.tensors) if header else None,
            "types": type_counts(header) if header else None,
            "kv_f16_bytes_per_token": self.kv_bytes,
        }
        if self.kind == "refuse":
            report["reasons"] = list(self.reasons)
        if self.kind == "need_more":
            report["need_bytes"] = self.needs
        return report


def guard(path: str | os.PathLike[str], engine: Engine = "mainline") -> Verdict:
    """Judges the file at `path` by its header. Raises FileProblem when it cannot be read."""
    with open_regular(path) as file:
        return guard_open(file, os.path.basename(path), engine)


def guard_open(file: BinaryIO, name: str, engine: Engine) -> Verdict:
    """As `guard`, of an open unbuffered file; `name` is its base name, which is checked too."""
    try:
        header = read_header_from(file, name)
    except BadHeader as error:
        return Verdict("refuse", name, engine, reasons=(error.reason,))
    except Truncated as error:
        return Verdict("need_more", name, engine, needs=error.needs)
    reasons = [*_wrong_names(header), *_fork_only(header, name, engine)]
    kv_bytes = None
    try:
        kv_bytes = kv_f16_bytes_per_token(header.metadata)
    except ValueError as error:
        reasons.append(str(error))
    kind: Literal["play", "refuse"] = "refuse" if reasons else "play"
    return Verdict(kind, name, engine, tuple(reasons), header=header, kv_bytes=kv_bytes)


def require_model(verdict: Verdict) -> Header:
    """The header of a file that the guard accepts and that is a complete model.

    A header without an architecture or without tensors can be valid and still describe no model. One part of a split
    model is refused: an engine loads the other parts beside it, which its pin does not cover.
    Raises Refused, Truncated.
    """
    if verdict.kind != "play" or verdict.header is None:
        raise verdict.error()
    if "general.architecture" not in verdict.header.metadata:
        raise Refused(f"{verdict.name}: the header names no general.architecture: not a model")
    if not verdict.header.tensors:
        raise Refused(f"{verdict.name}: the header lists no tensors: not a model")
    _require_not_split(verdict.header, verdict.name)
    return verdict.header


def _require_not_split(header: Header, name: str) -> None:
    parts = header.metadata.get(SPLIT_COUNT, 1)
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise Refused(f"{name}: {SPLIT_COUNT} is {describe(parts)}, not an integer")
    if parts > 1:
        raise Refused(
            f"{name}: one of {parts} parts of a split model: merge them with "
            "`llama-gguf-split --merge FIRST_PART MERGED`, then pin and use the merged file"
        )


def type_counts(header: Header) -> dict[str, int]:
    """How many tensors have each type, in the order of the type ids."""
    counts = Counter(tensor.type.id for tensor in header.tensors)
    return {BLOCK_TYPES[number].name: counts[number] for number in sorted(counts)}


def kv_f16_bytes_per_token(metadata: Mapping[str, Value]) -> int | None:
    """Bytes of f16 K/V cache a token takes: blocks x K/V heads x (key + value length) x 2.

    K/V heads may be given block by block. None when the header does not say enough; ValueError with a sentence when a
    key is no count or the size overflows 64 bits.
    """
    arch = metadata.get("general.architecture")
    if not isinstance(arch, str):
        return None

    def count(key: str) -> int | None:
        return _count(metadata, f"{arch}.{key}")

    blocks = count("block_count")
    heads = _head_counts(metadata, f"{arch}.attention.head_count")
    kv_heads = _head_counts(metadata, f"{arch}.attention.head_count_kv") or heads
    embedding = count("embedding_length")
    default = embedding // heads[0] if embedding is not None and heads and heads[0] else None
    lengths = [count(f"attention.{which}_length") for which in ("key", "value")]
    key_length, value_length = (default if length is None else length for length in lengths)
    if blocks is None or not kv_heads or key_length is None or value_length is None:
        return None
    if len(kv_heads) not in (1, blocks):
        raise ValueError(f"{arch}.attention.head_count_kv lists {len(kv_heads)} blocks where there are {blocks}")
    total_heads = sum(kv_heads) if len(kv_heads) > 1 else blocks * kv_heads[0]
    size = total_heads * (key_length + value_length) * F16_BYTES
    if size > MAX_UINT64:
        raise ValueError(f"the K/V size per token overflows: {size} bytes")
    return size


def _count(metadata: Mapping[str, Value], key: str) -> int | None:
    value = metadata.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{shown(key)} is {describe(value)}, not a count")
    if value < 0:
        raise ValueError(f"{shown(key)} is {value}, not a count")
    return value


def _head_counts(metadata: Mapping[str, Value], key: str) -> list[int] | None:
    """One count for all blocks, or one per block."""
    value = metadata.get(key)
    if isinstance(value, array):
        if len(value) > MAX_ENTRIES:
            raise ValueError(f"{shown(key)} lists {len(value)} blocks, more than the {MAX_ENTRIES} that are read")
        counts = [count for count in value if isinstance(count, int) and count >= 0]
        if len(counts) != len(value):
            raise ValueError(f"{shown(key)} is not an array of counts")
        return counts
    single = _count(metadata, key)
    return None if single is None else [single]


def _wrong_names(header: Header) -> list[str]:
    """Keys that every reader expects to be text, and are not."""
    wrong = []
    for key in ("general.architecture", "general.name", "general.basename"):
        value = header.metadata.get(key, "")
        if not isinstance(value, str):
            wrong.append(f"{key} is {describe(value)}, not a string")
        elif len(value) > MAX_NAME:
            wrong.append(f"{key} is {len(value)} characters long, past the {MAX_NAME} that are read: {shown(value)}")
    return wrong


def _fork_only(header: Header, name: str, engine: Engine) -> list[str]:
    """What only PrismML's fork supports, when the engine is mainline."""
    if engine != "mainline":
        return []
    reasons = []
    for type_name in type_counts(header):
        tensor = next(tensor for tensor in header.tensors if tensor.type.name == type_name)
        if tensor.type.fork_only:
            reasons.append(
                f"tensor {shown(tensor.name)} is {type_name} (id {tensor.type.id}), which only the prism fork supports"
            )
    for what in ("general.name", "general.basename"):
        value = header.metadata.get(what)
        if isinstance(value, str) and FORK_NAME.search(value):
            reasons.append(f"{what} {shown(value)} is a Bonsai 2 model, which only the prism fork supports")
    if FORK_NAME.search(name):
        reasons.append(f"the file name {shown(name)} is that of a Bonsai 2 model, which only the prism fork supports")
    return reasons


def _text(header: Header | None, key: str) -> str | None:
    value = header.metadata.get(key) if header else None
    return value if isinstance(value, str) and len(value) <= MAX_NAME else None
