"""The records that describe a model, and the reader of its metadata: what config.py and every architecture share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bankml.errors import UnsupportedModel
from bankml.gguf.values import shown_value


@dataclass(frozen=True)
class ModelShape:
    """Sizes count values. The GGUF reader and the Hugging Face reader both fill it in."""

    architecture: str
    n_layer: int
    n_embd: int
    n_ff: int
    n_vocab: int
    heads: int
    kv_heads: int
    head_size: int
    tied: bool  # the output matrix is the embedding

    @property
    def qkv_width(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_size


@dataclass(frozen=True)
class RopeConfig:
    """RoPE's parameters; `yarn_factor` None means no scaling. Contexts count tokens."""

    base: float
    yarn_factor: float | None
    original_context: int
    attention_factor: float


@dataclass(frozen=True)
class ModelConfig(ModelShape):
    """The shape and the hyperparameters of a supported model; `context_length` counts tokens."""

    context_length: int
    rms_eps: float
    rope: RopeConfig


@dataclass(frozen=True)
class HuggingFaceMapping:
    """How an architecture is stored by Hugging Face's libraries.

    `class_name` is the entry of config.json's `architectures`; `layer` maps the names of a layer's tensors, without
    `.weight`, from GGUF to safetensors. `default_head_size` None means hidden_size / num_attention_heads.
    `pairs_rope_rows`: GGUF has the rows of Q and K in adjacent pairs (2i, 2i + 1), safetensors in halves (i, i + n/2).
    `extra_keys` are header keys, without the architecture's prefix, that llama.cpp's converter adds.
    """

    class_name: str
    layer: Mapping[str, str]
    default_head_size: int | None
    kv_heads_required: bool
    pairs_rope_rows: bool
    extra_keys: Callable[[ModelShape], Mapping[str, int]]


def unsupported(reason: str) -> UnsupportedModel:
    """The refusal of a model that the native forward pass does not compute."""
    return UnsupportedModel(f"unsupported model: {reason}")


class MetadataKeys:
    """The metadata of one architecture, read with the types and ranges the forward pass needs."""

    def __init__(self, metadata: Mapping[str, Any], architecture: str) -> None:
        self._metadata = metadata
        self._prefix = architecture + "."

    def present(self, key: str) -> bool:
        return self._prefix + key in self._metadata

    def text(self, key: str, default: str) -> Any:
        """The value of `key`, of whatever type it is; `default` where it is missing."""
        return self._metadata.get(self._prefix + key, default)

    def count(self, key: str, default: int | None = None, least: int = 1, most: int = 1 << 24) -> int:
        value = self._metadata.get(self._prefix + key, default)
        if value is None:
            raise unsupported(f"{self._prefix}{key} is missing")
        if isinstance(value, bool) or not isinstance(value, int):
            raise unsupported(f"{self._prefix}{key} is not one whole number")
        if not least <= value <= most:
            raise unsupported(f"{self._prefix}{key} is {value}, outside {least} to {most}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._metadata.get(self._prefix + key, default)
        if value is None:
            raise unsupported(f"{self._prefix}{key} is missing")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
            raise unsupported(f"{self._prefix}{key} is not a positive number")
        return float(value)

    def require_default(self, key: str, *defaults: object) -> None:
        """Refuses a key that the forward pass does not implement, unless its value changes nothing."""
        value = self._metadata.get(self._prefix + key)
        if value is not None and value not in defaults:
            raise unsupported(f"{self._prefix}{key} is {shown_value(value)}")
