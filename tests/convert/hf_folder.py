"""A GGUF taken apart into the folder that Hugging Face's libraries would save: config, tokenizer and safetensors.

The weights are written by the `safetensors` package. Llama's Q and K rows go back from adjacent pairs to halves, by
index arithmetic of its own.
"""

import json

import numpy as np
from safetensors.numpy import load_file, save_file

from bankml.convert.dequantize import dequantize
from bankml.convert.hugging_face.convert import convert_folder
from bankml.convert.hugging_face.tokenizer import PRETOKENIZERS
from bankml.gguf.header import read_header
from tests.end_to_end import tiny

LLAMA, QWEN3 = tiny.MODELS[:2]

NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def tensors_of(path):
    """Every tensor's type and bytes, by its name."""
    header = read_header(path)
    raw = np.memmap(path, np.uint8, "r")
    at = header.data_offset
    return {t.name: (t, raw[at + t.offset : at + t.offset + t.nbytes].tobytes()) for t in header.tensors}


def stored_name(name):
    fixed = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "output.weight": "lm_head.weight",
    }
    if name in fixed:
        return fixed[name]
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.weight"


def halves(values, heads):
    """Row 2i of a head becomes row i, row 2i + 1 row n/2 + i."""
    size = len(values) // heads
    order = [head * size + row for head in range(heads) for row in [*range(0, size, 2), *range(1, size, 2)]]
    return np.ascontiguousarray(values[order])


def as_float(value):
    """The shortest number whose float32 is `value`, as a configuration would have it."""
    return float(str(np.float32(value)))


def make_folder(gguf, folder, shards=1):
    folder.mkdir()
    header = read_header(gguf)
    metadata = header.metadata
    arch = metadata["general.architecture"]
    write_config(folder, metadata, arch, [t.name for t in header.tensors])
    write_tokenizer(folder, metadata)
    stored = {}
    for name, (tensor, raw) in tensors_of(gguf).items():
        values = dequantize(raw, tensor.type).reshape(tensor.shape[::-1])
        values = values.astype(np.float16) if tensor.type.name == "F16" else values
        for part, key in (("attn_q.", "head_count"), ("attn_k.", "head_count_kv")):
            if arch == "llama" and part in name:
                values = halves(values, metadata[f"llama.attention.{key}"])
        stored[stored_name(name)] = values
    if shards == 1:
        save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    weight_map = {name: f"model-{i % shards + 1:05}-of-{shards:05}.safetensors" for i, name in enumerate(stored)}
    for file in set(weight_map.values()):
        save_file({name: stored[name] for name in stored if weight_map[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def write_config(folder, metadata, arch, names):
    def key(name, default=None):
        return metadata.get(f"{arch}.{name}", default)

    config = {
        "architectures": ["LlamaForCausalLM" if arch == "llama" else "Qwen3ForCausalLM"],
        "hidden_act": "silu",
        "hidden_size": key("embedding_length"),
        "intermediate_size": key("feed_forward_length"),
        "max_position_embeddings": key("context_length"),
        "num_attention_heads": key("attention.head_count"),
        "num_hidden_layers": key("block_count"),
        "num_key_value_heads": key("attention.head_count_kv"),
        "rms_norm_eps": as_float(key("attention.layer_norm_rms_epsilon")),
        "tie_word_embeddings": "output.weight" not in names,
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
    }
    if key("attention.key_length") is not None:
        config["head_dim"] = key("attention.key_length")
    if key("rope.freq_base") is not None:
        config["rope_theta"] = key("rope.freq_base")
    if key("rope.scaling.type") is not None:
        config["rope_scaling"] = {
            "rope_type": key("rope.scaling.type"),
            "factor": key("rope.scaling.factor"),
            "original_max_position_embeddings": key("rope.scaling.original_context_length"),
        }
    (folder / "config.json").write_text(json.dumps(config))
    sampling = {
        "temperature": metadata.get("general.sampling.temp"),
        "top_k": metadata.get("general.sampling.top_k"),
        "top_p": metadata.get("general.sampling.top_p"),
        "do_sample": True,
    }
    (folder / "generation_config.json").write_text(json.dumps(sampling))


def write_tokenizer(folder, metadata):
    tokens = [token.decode() for token in metadata["tokenizer.ggml.tokens"]]
    types = list(metadata["tokenizer.ggml.token_type"])
    added = [
        {"id": i, "content": tokens[i], "special": kind == 3, "lstrip": False, "rstrip": False, "single_word": False}
        for i, kind in enumerate(types)
        if kind in (3, 4)
    ]
    pre = metadata["tokenizer.ggml.pre"]
    tokenizer = {
        "added_tokens": added,
        "normalizer": {"type": "NFC"} if pre == "qwen2" else None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [*PRETOKENIZERS[pre].steps[:-1], {**PRETOKENIZERS[pre].steps[-1], "trim_offsets": True}],
        },
        "post_processor": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "unk_token": None,
            "vocab": {token: i for i, token in enumerate(tokens) if types[i] in (1, 3, 4)},
            "merges": [merge.decode().split(" ") for merge in metadata["tokenizer.ggml.merges"]],
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = {"add_bos_token": False, "chat_template": metadata["tokenizer.chat_template"]}
    for kind, key in {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}.items():
        id_ = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if id_ is not None:
            settings[f"{kind}_token"] = {"content": tokens[id_]} if kind == "eos" else tokens[id_]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def rewrite(folder, change):
    """The folder's only safetensors file with its arrays changed."""
    arrays = load_file(folder / "model.safetensors")
    change(arrays)
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / "model.safetensors")


def edit(folder, file, *path_and_value):
    """Sets the value at a path of keys in one of the folder's JSON files; None takes the key out."""
    *path, last, value = path_and_value
    document = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    at = document
    for key in path:
        at = at[key]
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value
    (folder / file).write_text(json.dumps(document))


def converted(folder, tmp_path):
    target = tmp_path / "out.gguf"
    convert_folder(str(folder), str(target), "model")
    return target
