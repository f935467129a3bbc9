"""A real Llama small enough to make in a test: random F16 weights, every byte a token and one that ends an answer."""

import numpy as np

from bankml.gate.verify import record, verify
from bankml.gguf.block_types import F16, F32
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_array, encode_value, writing

END, N_VOCAB = 256, 257
N_EMBD, N_FF, HEADS, KV_HEADS, HEAD_SIZE = 64, 96, 2, 2, 64

TEMPLATE = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}a:"


def _spellings():
    """GPT-2's spelling of the 256 bytes, then the end."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    bytes_ = [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]
    return [*bytes_, "<end>"]


def count(key, value):
    return key, encode_value(ValueType.UINT32, value)


def text(key, value):
    return key, encode_value(ValueType.STRING, value)


def vocabulary_entries(template=TEMPLATE):
    return [
        text("tokenizer.ggml.model", "gpt2"),
        text("tokenizer.ggml.pre", "smollm"),
        text("tokenizer.chat_template", template),
        ("tokenizer.ggml.tokens", encode_array(ValueType.STRING, _spellings())),
        ("tokenizer.ggml.token_type", encode_array(ValueType.INT32, [1] * 256 + [3])),
        ("tokenizer.ggml.merges", encode_array(ValueType.STRING, ["a b"])),
        count("tokenizer.ggml.eos_token_id", END),
    ]


def entries(n_layer, context, n_ff, template=TEMPLATE):
    return [
        text("general.architecture", "llama"),
        count("llama.block_count", n_layer),
        count("llama.context_length", context),
        count("llama.embedding_length", N_EMBD),
        count("llama.feed_forward_length", n_ff),
        count("llama.attention.head_count", HEADS),
        count("llama.attention.head_count_kv", KV_HEADS),
        count("llama.attention.key_length", HEAD_SIZE),
        count("llama.attention.value_length", HEAD_SIZE),
        count("llama.rope.dimension_count", HEAD_SIZE),
        ("llama.attention.layer_norm_rms_epsilon", encode_value(ValueType.FLOAT32, 1e-5)),
        *vocabulary_entries(template),
    ]


def tensors(n_layer, n_ff):
    width = HEADS * HEAD_SIZE
    specs = [TensorSpec("token_embd.weight", (N_EMBD, N_VOCAB), F16), TensorSpec("output_norm.weight", (N_EMBD,), F32)]
    for i in range(n_layer):
        matrices = {
            "attn_q": (N_EMBD, width),
            "attn_k": (N_EMBD, KV_HEADS * HEAD_SIZE),
            "attn_v": (N_EMBD, KV_HEADS * HEAD_SIZE),
            "attn_output": (width, N_EMBD),
            "ffn_gate": (N_EMBD, n_ff),
            "ffn_up": (N_EMBD, n_ff),
            "ffn_down": (n_ff, N_EMBD),
        }
        specs += [TensorSpec(f"blk.{i}.{name}.weight", shape, F16) for name, shape in matrices.items()]
        specs += [TensorSpec(f"blk.{i}.{name}.weight", (N_EMBD,), F32) for name in ("attn_norm", "ffn_norm")]
    return specs


def tiny_model(folder, n_layer=2, context=8192, seed=1, n_ff=N_FF):
    """Writes `tiny.gguf` and its record into `folder`; returns it verified."""
    rng = np.random.default_rng(seed)
    path, specs = folder / "tiny.gguf", tensors(n_layer, n_ff)
    with writing(path, entries(n_layer, context, n_ff), specs) as out:
        for spec in specs:
            if spec.type is F32:
                out.write(np.ones(spec.shape, np.float32).tobytes())
            else:
                values = rng.standard_normal(spec.shape[::-1]) * (1.0 if spec.name.startswith("token") else 0.25)
                out.write(values.astype(np.float16).tobytes())
    fork = folder / "tiny.gguf.FORK.json"
    record(path, fork)
    return verify(path, fork)
