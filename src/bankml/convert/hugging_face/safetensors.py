"""Reads untrusted safetensors files: an eight-byte length, a JSON header, the tensors' bytes.

Validated as the format requires before a byte of a tensor is read: the header is bounded and inside the file, names are
unique, every tensor has as many bytes as its shape and type need, and the tensors fill the rest of the file without
gaps or overlaps.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any, BinaryIO, NoReturn

from bankml.errors import FileProblem, Refused
from bankml.files import problem
from bankml.gguf.values import shown

MAX_HEADER_BYTES = 4 << 20
MAX_TENSORS = 1 << 16
MAX_DIMS = 8

# Bytes per value of every type in the format; the converter decides which are supported as weights.
SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1,
    "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4,
    "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file: `shape` as in PyTorch (rows first), `start` and `nbytes` in the entire file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    nbytes: int


class _Bad(Exception):
    pass


def read_tensors(file: BinaryIO, name: str) -> Mapping[str, StoredTensor]:
    """The tensors of an open unbuffered safetensors file by their names, in the order of their bytes.

    `name` is the file's name in messages. Raises Refused, saying what is wrong with it; FileProblem.
    """
    try:
        size = os.fstat(file.fileno()).st_size
        head = os.pread(file.fileno(), 8, 0)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or length < 2 or length > min(MAX_HEADER_BYTES, size - 8):
            raise _Bad(f"its first eight bytes give a header of {length} bytes in a file of {size}")
        raw = os.pread(file.fileno(), length, 8)
        if len(raw) < length:
            raise FileProblem(f"{name} became shorter while it was read")
        return _tensors(_object(raw), 8 + length, size)
    except OSError as error:
        raise problem("read", name, error) from error
    except _Bad as error:
        raise Refused(f"{name} is not a safetensors file: {error}") from error


def _object(raw: bytes) -> dict[str, Any]:
    if not raw.startswith(b"{"):
        raise _Bad("its header does not begin with {")
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise _Bad(f"its header is not JSON ({error})") from error
    if len(header) > MAX_TENSORS:
        raise _Bad(f"its header names {len(header)} tensors, the limit is {MAX_TENSORS}")
    return dict(header)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Bad(f"its header has {shown(name)} twice")
        found[name] = value
    return found


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _tensors(header: dict[str, Any], data: int, size: int) -> dict[str, StoredTensor]:
    header.pop("__metadata__", None)
    found = sorted((_tensor(name, value, data) for name, value in header.items()), key=lambda one: one.start)
    end = data
    for tensor in found:
        if tensor.start != end:
            raise _Bad(f"tensor {shown(tensor.name)} begins at byte {tensor.start - data}, expected {end - data}")
        end += tensor.nbytes
    if end != size:
        raise _Bad(f"its tensors end at byte {end} of {size}")
    return {tensor.name: tensor for tensor in found}


def _tensor(name: str, value: Any, data: int) -> StoredTensor:
    what = f"tensor {shown(name)}"
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise _Bad(f"{what} is not an object of dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in SIZES:
        raise _Bad(f"{what} has dtype {shown(str(dtype)[:60])}")
    if not _whole_numbers(shape) or len(shape) > MAX_DIMS:
        raise _Bad(f"{what} has a shape that is not a list of at most {MAX_DIMS} whole numbers")
    if not _whole_numbers(offsets) or len(offsets) != 2:
        raise _Bad(f"{what} has data_offsets that are not two whole numbers")
    nbytes, got = _nbytes(shape, SIZES[dtype]), offsets[1] - offsets[0]
    if nbytes is None:
        raise _Bad(f"{what} has {got} bytes, but the size of its shape in {dtype} does not fit 64 bits")
    if got != nbytes:
        raise _Bad(f"{what} has {got} bytes, but its shape in {dtype} needs {nbytes}")
    return StoredTensor(name, dtype, tuple(shape), data + offsets[0], nbytes)


def _nbytes(shape: list[int], size: int) -> int | None:
    """Bytes of a tensor, multiplied in the order of its dimensions as in the format's own library; None if a product
    overflows there."""
    counts = list(accumulate([*shape, size], mul))
    return counts[-1] if max(counts) < 1 << 64 else None


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 63 for one in value
    )
