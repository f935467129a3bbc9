"""Folders as Hugging Face's libraries save them, the same bytes everywhere: small shapes, weights of seeded integers.

`FOLDERS` are the ones that are converted, each with what real ones say in a way of its own. What llama.cpp's converter
makes of them is in tests/recordings/library/conversion.json.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from bankml.gguf.header import read_header
from tests.convert.hf_folder import tensors_of
from tests.end_to_end.tiny import MERGES, SPECIAL, TEMPLATE, vocabulary

Json = dict[str, Any]

HIDDEN, INNER, LAYERS = 64, 96, 2
OUT: Any = ...  # in what changes a document: the key is left out

# After the vocabulary's own rows: text, special, normalized.
ADDED = [
    ("<tool_call>", False, False),
    ("<|fim_prefix|>", False, False),  # looks special, and is not said to be
    ("<think>", False, True),
    ("   ", False, True),
    ("a▁b", False, False),
    ("<|extra|>", True, False),
]
ROWS = len(vocabulary()) + len(ADDED) + 5  # the last five are no token's

CONFIGS: Mapping[str, Json] = {
    "llama": {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "initializer_range": 0.02,
        "intermediate_size": INNER,
        "max_position_embeddings": 4096,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 4,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": 2,
        "pad_token_id": 2,
        "pretraining_tp": 1,
        "rms_norm_eps": 1e-05,
        "rope_interleaved": False,
        "rope_scaling": None,
        "rope_theta": 100000,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": ROWS,
    },
    "qwen3": {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "head_dim": 32,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "initializer_range": 0.02,
        "intermediate_size": INNER,
        "max_position_embeddings": 40960,
        "max_window_layers": LAYERS,
        "model_type": "qwen3",
        "num_attention_heads": 4,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1000000,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": ROWS,
    },
}
SETTINGS: Mapping[str, Json] = {
    "llama": {
        "add_prefix_space": False,
        "bos_token": "<|im_start|>",
        "chat_template": TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "model_max_length": 4096,
        "pad_token": "<|im_end|>",
        "tokenizer_class": "GPT2Tokenizer",
        "unk_token": "<|endoftext|>",
    },
    "qwen3": {
        "add_bos_token": False,
        "add_prefix_space": False,
        "bos_token": None,
        "chat_template": TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 131072,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    },
}
PRE = {"llama": "smollm", "qwen3": "qwen2"}
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Folder:
    """One folder. `config`, `settings` and `tokenizer` change what is said above; `files` are written as they are."""

    name: str
    architecture: str
    dtype: str = "F32"
    shards: int = 1
    config: Json = field(default_factory=dict)
    settings: Json = field(default_factory=dict)
    tokenizer: Callable[[Json], object] = lambda tokenizer: None
    files: Mapping[str, bytes] = field(default_factory=dict)
    head_copied: bool = False  # the embedding again as lm_head.weight, though the two are tied


def yarn(**more: Any) -> Json:
    return {"factor": 4.0, "original_max_position_embeddings": 1024, "rope_type": "yarn", **more}


def _merges_as_texts(tokenizer: Json) -> None:
    tokenizer["model"]["merges"] = [" ".join(pair) for pair in tokenizer["model"]["merges"]]


def _added_twice(tokenizer: Json) -> None:
    """A token of the vocabulary is an added one too; and what adds nothing is in a sequence."""
    number = tokenizer["model"]["vocab"]["the"]
    tokenizer["added_tokens"].append(
        {**tokenizer["added_tokens"][-1], "id": number, "content": "the", "special": False}
    )
    tokenizer["post_processor"] = {"type": "Sequence", "processors": [tokenizer["decoder"]]}


GENERATION = json.dumps(
    {
        "bos_token_id": 0,
        "do_sample": True,
        "eos_token_id": [2, 0],
        "pad_token_id": 0,
        "repetition_penalty": 1.05,
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
        "transformers_version": "4.51.0",
    }
).encode()

# What llama.cpp's converter reads beside it.
OWN_GENERATION = json.dumps(
    {
        "min_p": 0.1,
        "mirostat": 2,
        "mirostat_eta": 0.2,
        "mirostat_tau": 4.5,
        "penalty_last_n": 33,
        "penalty_repeat": 1.2,
        "repetition_penalty": 1.3,
        "sequence": "top_k;temperature",
        "top_p": None,
        "xtc_probability": 0.2,
        "xtc_threshold": 0.3,
    }
).encode()

FOLDERS = (
    Folder("llama-f32", "llama", config={"rope_theta": 12345.678}),
    Folder("llama-tied-bf16", "llama", "BF16", config={"tie_word_embeddings": True, "num_key_value_heads": 4}),
    Folder("llama-head-dim", "llama", "BF16", 3, config={"head_dim": 24, "num_key_value_heads": 1}),
    Folder("llama-rope-parameters", "llama", "F16", config={
        "rope_scaling": OUT, "rope_theta": OUT, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"},
        "dtype": "float16", "torch_dtype": OUT,
    }),
    Folder("llama-yarn", "llama", "BF16", config={"rope_scaling": yarn(beta_fast=32, beta_slow=1.0)}),
    Folder("llama-yarn-old-name", "llama", config={
        "rope_scaling": {"type": "yarn", "factor": 2.5, "original_max_position_embeddings": 2048}, "rope_theta": OUT,
    }),
    Folder("llama-yarn-parameters", "llama", config={
        "rope_scaling": OUT, "rope_theta": OUT, "rope_parameters": yarn(rope_theta=50000.0),
    }),
    Folder("llama-head-copied", "llama", "BF16", config={"tie_word_embeddings": True}, head_copied=True),
    Folder("llama-lines", "llama", settings={
        "chat_template": OUT, "bos_token": None, "cls_token": "<|endoftext|>",
    }, files={
        "chat_template.jinja": TEMPLATE.replace("\n", "\r\n").encode() + b"{# a\rb #}",
        "generation_config.json": OWN_GENERATION,
    }),
    Folder("llama-no-theta", "llama", config={"rope_theta": OUT, "num_key_value_heads": OUT}, settings={
        "additional_special_tokens": ["<|extra|>"], "sep_token": "<|im_end|>", "eos_token": None,
    }, tokenizer=_added_twice),
    Folder("qwen3-bf16", "qwen3", "BF16", 2, tokenizer=_merges_as_texts, files={"generation_config.json": GENERATION}),
    Folder("qwen3-tied", "qwen3", "BF16", config={"tie_word_embeddings": True, "head_dim": 16}),
    Folder("qwen3-default-head", "qwen3", config={"head_dim": OUT, "num_attention_heads": 2, "num_key_value_heads": 1}),
    Folder("qwen3-yarn", "qwen3", "BF16", config={"rope_scaling": yarn(original_max_position_embeddings=32768)}),
    Folder("qwen3-yarn-parameters", "qwen3", "F16", config={
        "rope_scaling": OUT, "rope_theta": OUT, "layer_types": ["full_attention"] * LAYERS,
        "rope_parameters": yarn(rope_theta=1000000, factor=8, attention_factor=None, truncate=True),
    }),
)  # fmt: skip


def write(folder: Folder, to: Path) -> Path:
    """Writes the folder as `to`, which is not there yet."""
    to.mkdir()
    config = _changed(CONFIGS[folder.architecture], folder.config)
    settings = _changed(SETTINGS[folder.architecture], folder.settings)
    tokenizer = _tokenizer(folder.architecture)
    folder.tokenizer(tokenizer)
    for name, document in (("config", config), ("tokenizer_config", settings), ("tokenizer", tokenizer)):
        (to / f"{name}.json").write_text(json.dumps(document, ensure_ascii=False, indent=2), encoding="utf-8")
    for name, content in folder.files.items():
        (to / name).parent.mkdir(exist_ok=True)
        (to / name).write_bytes(content)
    _write_weights(folder, weights(folder, config), to)
    return to


def _changed(document: Json, changes: Json) -> Json:
    return {key: value for key, value in {**document, **changes}.items() if value is not OUT}


def _tokenizer(architecture: str) -> Json:
    tokens = vocabulary()
    added = [*((text, True, False) for text in SPECIAL), *ADDED]
    ids = {text: id for id, text in enumerate([*tokens, *(text for text, _, _ in ADDED)])}
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    splits = {
        "llama": {"type": "Digits", "individual_digits": True},
        "qwen3": {"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": False},
    }
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    steps = [splits[architecture], {**byte_level, "use_regex": architecture == "llama"}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": ids[text], "content": text, **flags, "normalized": normalized, "special": special}
            for text, special, normalized in added
        ],
        "normalizer": {"type": "NFC"} if architecture == "qwen3" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "post_processor": {**byte_level, "use_regex": False} if architecture == "qwen3" else None,
        "decoder": {**byte_level, "add_prefix_space": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {text: id for id, text in enumerate(tokens)},
            # each side is a token: Hugging Face's library wants it so
            "merges": [pair for pair in map(str.split, MERGES) if set(pair) <= set(tokens)],
        },
    }


def contents(gguf: Path) -> Json:
    """A GGUF file: every key's type and value (an array's as a hash), every tensor's type, shape and hash."""
    header = read_header(gguf)
    metadata = {key: _described(value) for key, value in sorted(header.metadata.items())}
    tensors = {
        name: [tensor.type.name, list(tensor.shape), sha256(raw).hexdigest()]
        for name, (tensor, raw) in sorted(tensors_of(gguf).items())
    }
    return {"metadata": metadata, "tensors": tensors}


def _described(value: Any) -> list[Any]:
    if isinstance(value, str | bool | int | float):
        return [type(value).__name__, value]
    items = [item.decode() if isinstance(item, bytes) else item for item in value]
    return ["array", len(items), sha256(json.dumps(items).encode()).hexdigest()]


# The weights


def weights(folder: Folder, config: Json) -> dict[str, np.ndarray]:
    """Every tensor as float32, most with more digits than f16 has: rounding shows."""
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    size = config.get("head_dim") or (128 if folder.architecture == "qwen3" else HIDDEN // heads)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (ROWS, HIDDEN)}
    for i in range(LAYERS):
        layer = {
            "input_layernorm": (HIDDEN,),
            "mlp.down_proj": (HIDDEN, INNER),
            "mlp.gate_proj": (INNER, HIDDEN),
            "mlp.up_proj": (INNER, HIDDEN),
            "post_attention_layernorm": (HIDDEN,),
            "self_attn.k_proj": (kv_heads * size, HIDDEN),
            "self_attn.o_proj": (HIDDEN, heads * size),
            "self_attn.q_proj": (heads * size, HIDDEN),
            "self_attn.v_proj": (kv_heads * size, HIDDEN),
        }
        if folder.architecture == "qwen3":
            layer |= {"self_attn.k_norm": (size,), "self_attn.q_norm": (size,)}
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    shapes["model.norm.weight"] = (HIDDEN,)
    if not config.get("tie_word_embeddings"):
        shapes["lm_head.weight"] = (ROWS, HIDDEN)
    random = np.random.RandomState(sum(folder.name.encode()))
    found = {name: _values(random, shape) for name, shape in shapes.items()}
    if folder.head_copied:
        found["lm_head.weight"] = found["model.embed_tokens.weight"]
    return found


def _values(random: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
    values = random.randint(-(1 << 22), 1 << 22, int(np.prod(shape))).astype(np.float32)
    if len(shape) == 1:
        return np.float32(1) + values / np.float32(1 << 24)
    values /= np.float32(1 << 24)
    values[::7] *= np.float32(2**-14)  # subnormal as f16
    values[:6] = 1 + 2**-11, 1 + 3 * 2**-11, 2**-25, 3 * 2**-25, -0.0, -(2**-24)
    return values.reshape(shape)


def _write_weights(folder: Folder, arrays: dict[str, np.ndarray], to: Path) -> None:
    if folder.shards == 1:
        save(to / "model.safetensors", arrays, folder.dtype)
        return
    files = [f"model-{i + 1:05}-of-{folder.shards:05}.safetensors" for i in range(folder.shards)]
    places = {name: files[i % folder.shards] for i, name in enumerate(arrays)}
    for file in files:
        save(to / file, {name: arrays[name] for name in arrays if places[name] == file}, folder.dtype)
    index = {"metadata": {"total_size": 0}, "weight_map": places}
    (to / "model.safetensors.index.json").write_text(json.dumps(index))


def save(path: Path, arrays: Mapping[str, np.ndarray], dtype: str) -> None:
    """A safetensors file; numpy has no bfloat16, so it is written by hand. F16 and BF16 are what float32 is cut to."""
    header: Json = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        raw = _stored(array.astype("<f4"), dtype)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _stored(array: np.ndarray, dtype: str) -> bytes:
    if dtype == "BF16":
        return (array.view("<u4") >> 16).astype("<u2").tobytes()
    return array.astype({"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()
