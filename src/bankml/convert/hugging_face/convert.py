"""Writes a folder in Hugging Face's format as one F16 GGUF: every matrix F16, every vector F32.

The values are those of llama.cpp b11192's converter: F32 and BF16 rounded to the nearest f16, ties to even; F16
unchanged. Memory stays bounded: a few megabytes of one tensor at a time.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from bankml.convert.dequantize import dequantize
from bankml.convert.hugging_face.config import (
    EMBEDDING,
    HEAD,
    MetadataEntry,
    Weight,
    extra_tensors,
    model_entries,
    read_shape,
    sampling_entries,
    weights,
)
from bankml.convert.hugging_face.fields import JsonConfig, glimpse
from bankml.convert.hugging_face.safetensors import StoredTensor, read_tensors
from bankml.convert.hugging_face.tokenizer import TokenizerFiles, chat_template, tokenizer_entries
from bankml.convert.quantize import quantize
from bankml.convert.requantize import check_finite
from bankml.errors import FileProblem, Refused
from bankml.files import open_regular, problem
from bankml.gate.digest import sha256_open
from bankml.gate.guard import guard, require_model
from bankml.gate.identity import FileIdentity
from bankml.gguf.block_types import BF16, F16, F32, BlockType
from bankml.gguf.header import read_header
from bankml.gguf.values import shown
from bankml.gguf.writer import TensorSpec, TensorWriter, writing
from bankml.library.json_file import parse_object, read_bytes
from bankml.model.config import read_config
from bankml.model.shape import ModelShape
from bankml.sampling.parameters import model_defaults
from bankml.text.template import ChatTemplate
from bankml.text.tokenizer import Tokenizer

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
GENERATION = "generation_config.json"
TEMPLATE = "chat_template.jinja"
SPECIAL_MAP = "special_tokens_map.json"
ADDED_NUMBERS = "added_tokens.json"
MODULES = "modules.json"  # of sentence-transformers: replaces the head
INDEX = "model.safetensors.index.json"
WEIGHTS = "model.safetensors"
SUFFIX = ".safetensors"

MOST_JSON_BYTES = 64 << 20
MOST_SHARDS = 1000
CHUNK_WEIGHTS = 1 << 20
DTYPES = {"F32": F32, "F16": F16, "BF16": BF16}

Progress = Callable[[int], object]  # called with the bytes of weights hashed or converted since the last call


@dataclass(frozen=True)
class Input:
    """A source file of a conversion: its name in the folder, its length, its sha256 (64 hex digits)."""

    path: str
    bytes: int
    sha256: str


def is_model_folder(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(os.path.join(path, CONFIG))


def source_names(folder: str) -> set[str]:
    """The names of the folder's files that a conversion of it reads, if they are there."""
    optional = (CONFIG, TOKENIZER, SETTINGS, GENERATION, SPECIAL_MAP, ADDED_NUMBERS, INDEX)
    return {name for name in optional if os.path.exists(os.path.join(folder, name))}


def weight_bytes(folder: str) -> int:
    """The bytes of the folder's safetensors files, for a progress bar; 0 if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat().st_size for entry in entries if entry.name.endswith(SUFFIX))
    except OSError:
        return 0


def convert_folder(folder: str, target: str, name: str, progress: Progress | None = None) -> list[Input]:
    """Writes the model in `folder` to `target`, named `name` in its header; returns every source file.

    The JSON files and the safetensors headers are validated before a weight is read. `progress` gets each byte of the
    weights twice: hashed, then converted. Raises Refused, naming the file and what is unsupported or invalid, or
    FileProblem; no file is left then.
    """
    inputs: list[Input] = []
    config = _document(folder, CONFIG, inputs)
    shape = read_shape(config)
    if os.path.exists(os.path.join(folder, MODULES)):
        raise Refused(f"{folder} has {MODULES}: embedding models are unsupported")
    with ExitStack() as stack:
        index: list[Input] = []
        shards = _shards(folder, index, stack)
        plan_ = _assign(weights(shape), shards, shape)  # bears out the sizes of config.json before they are used
        entries = [*model_entries(config, shape, name), *_tokenizer(folder, config, shape, inputs)]
        entries += sampling_entries(_optional(folder, GENERATION, inputs))
        _check_text(target, entries)
        _check_tied_head(shards, shape)
        inputs += index
        inputs += [shard.hashed(progress) for shard in shards]
        extra = extra_tensors(config, shape)
        specs = [TensorSpec(name, values.shape[::-1], F32) for name, values in extra.items()]
        specs += [TensorSpec(weight.name, weight.shape[::-1], _type(weight)) for weight, _, _ in plan_]
        with writing(target, entries, specs) as out:
            for values in extra.values():
                out.write(values.astype("<f4").tobytes())
            for weight, shard, stored in plan_:
                _write(out, weight, shard, stored, progress)
            for shard in shards:
                shard.check_unchanged()
    try:
        read_config(require_model(guard(target)))
    except BaseException:
        os.unlink(target)
        raise
    return inputs


# The JSON files


def _document(folder: str, name: str, inputs: list[Input]) -> JsonConfig:
    path = os.path.join(folder, name)
    raw = read_bytes(path, MOST_JSON_BYTES)
    inputs.append(Input(name, len(raw), sha256(raw).hexdigest()))
    return JsonConfig(name, parse_object(raw, path))


def _optional(folder: str, name: str, inputs: list[Input]) -> JsonConfig:
    """As `_document`; an empty one for a missing file."""
    return _document(folder, name, inputs) if os.path.exists(os.path.join(folder, name)) else JsonConfig(name, {})


def _tokenizer(folder: str, config: JsonConfig, shape: ModelShape, inputs: list[Input]) -> Iterator[MetadataEntry]:
    tokenizer = _document(folder, TOKENIZER, inputs)
    settings = _document(folder, SETTINGS, inputs)
    special_map, numbers = (_optional(folder, name, inputs) for name in (SPECIAL_MAP, ADDED_NUMBERS))
    template = chat_template(settings, _template_beside(folder, settings, inputs))
    files = TokenizerFiles(tokenizer, settings, special_map, numbers, template)
    yield from tokenizer_entries(files, config, shape.n_vocab)


def _template_beside(folder: str, settings: JsonConfig, inputs: list[Input]) -> str | None:
    """The text of chat_template.jinja, if it is used, with line ends as Python reads them."""
    path = os.path.join(folder, TEMPLATE)
    if settings.get("chat_template") is not None or not os.path.exists(path):
        return None
    raw = read_bytes(path, MOST_JSON_BYTES)
    inputs.append(Input(TEMPLATE, len(raw), sha256(raw).hexdigest()))
    try:
        return raw.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Refused(f"{TEMPLATE} is not UTF-8: byte {error.start}") from error


def _check_text(target: str, entries: Sequence[MetadataEntry]) -> None:
    """Refuses an unsupported vocabulary, template or sampling defaults by the rules of a loaded model: a header-only
    file is written, read back and removed."""
    trial = f"{target}.header"
    try:
        with writing(trial, entries, []):
            pass
        header = read_header(trial)
    finally:
        if os.path.exists(trial):
            os.unlink(trial)
    tokenizer = Tokenizer.from_header(header)
    ChatTemplate(str(header.metadata["tokenizer.chat_template"]), tokenizer.template_tokens)
    model_defaults(header.metadata)


# The safetensors files


class _Shard:
    """One open safetensors file."""

    def __init__(self, folder: str, name: str, stack: ExitStack) -> None:
        self.name = name
        self.file: BinaryIO = stack.enter_context(open_regular(os.path.join(folder, name)))
        self._identity = FileIdentity.of(self.file.fileno())
        self.tensors: Mapping[str, StoredTensor] = read_tensors(self.file, name)

    def hashed(self, progress: Progress | None) -> Input:
        return Input(self.name, self._identity.size, sha256_open(self.file, self.name, progress))

    def read(self, start: int, length: int) -> bytes:
        try:
            raw = os.pread(self.file.fileno(), length, start)
        except OSError as error:
            raise problem("read", self.name, error) from error
        if len(raw) < length:
            raise FileProblem(f"{self.name} became shorter while it was converted")
        return raw

    def check_unchanged(self) -> None:
        if FileIdentity.of(self.file.fileno()) != self._identity:
            raise Refused(f"{self.name} changed while it was converted: refused")


def _shards(folder: str, inputs: list[Input], stack: ExitStack) -> list[_Shard]:
    """The files with the weights: those of the index, or the only one."""
    if not os.path.exists(os.path.join(folder, INDEX)):
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))
        except OSError as error:
            raise problem("list", folder, error) from error
        if WEIGHTS in names:  # other files may be adapters, or the same weights in one piece
            names = [WEIGHTS]
        if len(names) != 1:
            raise Refused(f"{folder} has {len(names) or 'no'} {SUFFIX} files and no {INDEX}: expected exactly one file")
        return [_Shard(folder, names[0], stack)]
    index = _document(folder, INDEX, inputs)
    places = index.object("weight_map").values
    for tensor, name in places.items():
        if not isinstance(name, str) or name != os.path.basename(name) or not name.endswith(SUFFIX):
            raise index.refuse(
                "weight_map", f"has {shown(tensor)} in {glimpse(name)}, which is not a {SUFFIX} file name"
            )
    names = sorted(set(places.values()))
    if not names:
        raise index.refuse("weight_map", "names no file")
    if len(names) > MOST_SHARDS:
        raise index.refuse("weight_map", f"names {len(names)} files, the limit is {MOST_SHARDS}")
    shards = [_Shard(folder, name, stack) for name in names]
    found = {tensor: shard.name for shard in shards for tensor in shard.tensors}
    odd = next((tensor for tensor in {**places, **found} if places.get(tensor) != found.get(tensor)), None)
    if odd is not None or len(found) != sum(len(shard.tensors) for shard in shards):
        where = shown(odd) if odd is not None else "a tensor in two files"
        raise index.refuse("weight_map", f"does not match the files' tensors: {where}")
    return shards


_Assigned = tuple[Weight, _Shard, StoredTensor]


def _assign(expected: Sequence[Weight], shards: Sequence[_Shard], shape: ModelShape) -> list[_Assigned]:
    """Each weight with its tensor. Raises Refused for one that is missing, unknown, or of another shape or type."""
    stored = {name: (shard, tensor) for shard in shards for name, tensor in shard.tensors.items()}
    found: list[_Assigned] = []
    for weight in expected:
        if weight.stored not in stored:
            raise Refused(f"tensor {shown(weight.stored)} is missing from {shards[0].name}")
        shard, tensor = stored.pop(weight.stored)
        if tensor.shape != weight.shape:
            raise Refused(
                f"{shard.name}: tensor {shown(tensor.name)} has shape {list(tensor.shape)}, "
                f"expected {list(weight.shape)}"
            )
        if tensor.dtype not in DTYPES:
            what = f"{shard.name}: tensor {shown(tensor.name)}"
            raise Refused(f"{what}: unsupported type {tensor.dtype} (supported: {', '.join(DTYPES)})")
        found.append((weight, shard, tensor))
    for name, (shard, _) in stored.items():
        derivable = name.endswith(".rotary_emb.inv_freq") or (shape.tied and name == HEAD)
        if not derivable:
            raise Refused(f"{shard.name}: tensor {shown(name)} is not part of the {shape.architecture} graph")
    return found


def _check_tied_head(shards: Sequence[_Shard], shape: ModelShape) -> None:
    """A stored head that is tied is omitted, so it must equal the embedding."""
    stored = {name: (shard, tensor) for shard in shards for name, tensor in shard.tensors.items()}
    if not shape.tied or HEAD not in stored:
        return
    (shard, head), (other, embedding) = stored[HEAD], stored[EMBEDDING]
    pieces = range(0, head.nbytes, CHUNK_WEIGHTS)
    same = (head.dtype, head.shape) == (embedding.dtype, embedding.shape) and all(
        shard.read(head.start + at, min(CHUNK_WEIGHTS, head.nbytes - at))
        == other.read(embedding.start + at, min(CHUNK_WEIGHTS, head.nbytes - at))
        for at in pieces
    )
    if not same:
        raise Refused(f"{shard.name}: tensor {HEAD!r} is not {EMBEDDING!r}, though tie_word_embeddings is true")


# The weights


def _type(weight: Weight) -> BlockType:
    return F32 if len(weight.shape) == 1 else F16


def _write(out: TensorWriter, weight: Weight, shard: _Shard, stored: StoredTensor, progress: Progress | None) -> None:
    type_, read_as = _type(weight), DTYPES[stored.dtype]
    for start, count in _pieces(weight):
        raw = shard.read(stored.start + start * read_as.size, count * read_as.size)
        values = dequantize(raw, read_as)
        check_finite(f"{shard.name}: tensor {shown(stored.name)}", values, type_)
        if weight.heads:
            values = _adjacent(values, weight)
        out.write(quantize(values, type_).data)
        if progress is not None:
            progress(len(raw))


def _pieces(weight: Weight) -> Iterator[tuple[int, int]]:
    """Start and number of values of each piece: complete heads of Q and K, else about `CHUNK_WEIGHTS`."""
    rows, columns = weight.shape[0], weight.shape[1] if len(weight.shape) > 1 else 1
    step = rows // weight.heads if weight.heads else max(CHUNK_WEIGHTS // columns, 1)
    for row in range(0, rows, step):
        yield row * columns, min(step, rows - row) * columns


def _adjacent(head: npt.NDArray[np.float32], weight: Weight) -> npt.NDArray[np.float32]:
    """The rows of one head from halves (i, i + n/2) to adjacent pairs (2i, 2i + 1), which Llama's RoPE rotates."""
    halves = head.reshape(2, -1, weight.shape[1])
    return np.ascontiguousarray(halves.swapaxes(0, 1)).reshape(-1)
