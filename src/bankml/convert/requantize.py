"""Rewrites a GGUF in another weight type: every matrix in one of `OUT_TYPES`, vectors (norms, biases) in F32.

Matrices that llama-quantize leaves alone become F32 too. Keys and tensors keep their order; `general.file_type` and
`general.quantization_version` are updated. Memory stays bounded: a million weights of one tensor at a time.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from bankml.convert.dequantize import READABLE, dequantize
from bankml.convert.quantize import quantize
from bankml.errors import FileProblem, Refused, UsageError
from bankml.files import open_regular, problem
from bankml.gate.guard import guard_open, require_model
from bankml.gate.identity import FileIdentity
from bankml.gguf.block_types import BF16, BLOCK_TYPES, F16, F32, Q1_0, Q2_0, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, BlockType
from bankml.gguf.header import Header, TensorInfo
from bankml.gguf.values import ValueType, shown
from bankml.gguf.writer import TensorSpec, writing

FILE_TYPE_KEY = "general.file_type"
QUANTIZATION_VERSION_KEY = "general.quantization_version"
QUANTIZATION_VERSION = 2
CHUNK_WEIGHTS = 1 << 20
# The least magnitudes that are rounded to infinity: half way from the largest finite value to the next power of two.
F16_OVERFLOW = (65504.0 + 2.0**16) / 2
BF16_OVERFLOW = ((2.0**8 - 1) * 2.0**120 + 2.0**128) / 2

# Matrices that llama-quantize (b11192) leaves alone: by their whole name, and by a part of it.
KEPT_NAMES = ("position_embd.weight", "token_types.weight")
KEPT_PARTS = (
    "_norm.weight",
    "ffn_gate_inp.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "attn_rel_b.weight",
)

Progress = Callable[[int], object]  # called with the number of input bytes converted since the last call


@dataclass(frozen=True)
class OutType:
    """A value of `--outtype`: the type of the matrices and llama.cpp's file type number."""

    type: BlockType
    file_type: int


OUT_TYPES = {
    "f32": OutType(F32, 0),
    "f16": OutType(F16, 1),
    "bf16": OutType(BF16, 32),
    "q8_0": OutType(Q8_0, 7),
    "q6_k": OutType(BLOCK_TYPES[14], 18),
    "q5_k": OutType(BLOCK_TYPES[13], 17),
    "q4_k": OutType(BLOCK_TYPES[12], 15),
    "q5_1": OutType(Q5_1, 9),
    "q5_0": OutType(Q5_0, 8),
    "q4_1": OutType(Q4_1, 3),
    "q4_0": OutType(Q4_0, 2),
    "q2_0": OutType(Q2_0, 41),
    "q1_0": OutType(Q1_0, 40),
}


def convert_gguf(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    outtype: str,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Header:
    """Writes `target` from `source`; returns the header that was read.

    Refused before anything is written: a header the guard refuses, an unsupported weight type, a row that is not a
    multiple of the new type's block. Refused during conversion, leaving no file: a weight that is not finite, or too
    large for the new type. Raises UsageError, Refused, Truncated or FileProblem.
    """
    out = OUT_TYPES[outtype]
    with open_regular(source) as file:
        name = os.path.basename(source)
        before = FileIdentity.of(file.fileno())
        header = require_model(guard_open(file, name, "mainline"))
        _check_target(source, target, overwrite)
        specs = [_spec(name, tensor, out.type) for tensor in header.tensors]
        with writing(target, _entries(header, out), specs, header.alignment) as writer:
            for tensor, spec in zip(header.tensors, specs, strict=True):
                for raw in _pieces(file, name, header.data_offset + tensor.offset, tensor):
                    writer.write(_convert_piece(name, tensor, spec.type, raw))
                    if progress is not None:
                        progress(len(raw))
            if FileIdentity.of(file.fileno()) != before:
                raise Refused(f"{name} changed while it was converted: refused")
    return header


def _check_target(source: str | os.PathLike[str], target: str | os.PathLike[str], overwrite: bool) -> None:
    if not os.path.lexists(target):
        return
    if os.path.exists(target) and os.path.samefile(source, target):
        raise UsageError(f"{os.fspath(target)} is the input itself: choose another output file")
    if not overwrite:
        raise UsageError(f"{os.fspath(target)} exists: give --force to replace it")
    if not os.path.isfile(target):
        raise UsageError(f"{os.fspath(target)} exists and is not a regular file")


def _spec(name: str, tensor: TensorInfo, type_: BlockType) -> TensorSpec:
    """The converted tensor: a matrix becomes `type_`; a vector, or a matrix that llama-quantize leaves alone, F32."""
    if tensor.type not in READABLE:
        known = ", ".join(row.name for row in READABLE)
        what = f"{name}: tensor {shown(tensor.name)}"
        raise Refused(f"{what}: unsupported weight type {tensor.type.name} (supported: {known})")
    if not _quantized(tensor):
        return TensorSpec(tensor.name, tensor.shape, F32)
    if tensor.shape[0] % type_.weights:
        raise Refused(
            f"{name}: tensor {shown(tensor.name)} has rows of {tensor.shape[0]}, "
            f"not a multiple of {type_.weights}, the block of {type_.name}"
        )
    return TensorSpec(tensor.name, tensor.shape, type_)


def _quantized(tensor: TensorInfo) -> bool:
    """As llama-quantize decides; a matrix of one row is a vector to ggml."""
    if all(extent == 1 for extent in tensor.shape[1:]):
        return False
    name = tensor.name
    return name.endswith("weight") and name not in KEPT_NAMES and not any(part in name for part in KEPT_PARTS)


def _entries(header: Header, out: OutType) -> Iterator[tuple[str, bytes]]:
    written = {
        key: ValueType.UINT32.to_bytes(4, "little") + value.to_bytes(4, "little")
        for key, value in ((QUANTIZATION_VERSION_KEY, QUANTIZATION_VERSION), (FILE_TYPE_KEY, out.file_type))
    }
    for key in header.metadata:
        yield key, written.pop(key) if key in written else header.encoded(key)
    yield from written.items()


def _pieces(file: BinaryIO, name: str, start: int, tensor: TensorInfo) -> Iterator[bytes]:
    """The tensor's bytes, about `CHUNK_WEIGHTS` weights per piece, complete blocks of any type in each."""
    step = tensor.type.nbytes(CHUNK_WEIGHTS)
    for at in range(0, tensor.nbytes, step):
        length = min(step, tensor.nbytes - at)
        try:
            raw = os.pread(file.fileno(), length, start + at)
        except OSError as error:
            raise problem("read", name, error) from error
        if len(raw) < length:
            raise FileProblem(f"{name} became shorter while it was converted")
        yield raw


def _convert_piece(name: str, tensor: TensorInfo, type_: BlockType, raw: bytes) -> memoryview:
    weights = dequantize(raw, tensor.type)
    check_finite(f"{name}: tensor {shown(tensor.name)}", weights, type_)
    if type_ is tensor.type:
        return memoryview(raw)
    return quantize(weights, type_).data


def check_finite(what: str, weights: npt.NDArray[np.float32], type_: BlockType) -> None:
    """Raises Refused for weights that `type_` cannot represent: a model with such a weight gives useless answers.

    `what` begins the message: the file and the tensor.
    """
    largest = float(np.abs(weights).max())
    if not np.isfinite(largest):
        raise Refused(f"{what} has a weight that is not finite")
    limits = {F32: (np.inf, "F32"), BF16: (BF16_OVERFLOW, "bf16")}
    limit, name = limits.get(type_, (F16_OVERFLOW, "f16"))
    if largest >= limit:
        raise Refused(f"{what} has a weight of magnitude {largest:g}, too large for {name}")
