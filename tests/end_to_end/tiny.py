"""Tiny models, the same bytes everywhere: two layers of random weights, 256 bytes and a few merges to speak with.

Weights come from a seeded generator's integers, so that no library's logarithm has a say in them.
"""

from dataclasses import dataclass

import numpy as np

from bankml.convert.quantize import quantize
from bankml.gguf.block_types import F16, F32, Q1_0, Q2_0, BlockType
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_array, encode_value, writing

WIDTH, HIDDEN, LAYERS = 128, 256, 2
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
NORMAL, CONTROL = 1, 3
MERGES = [
    "t h",
    "th e",
    "Ġ t",
    "Ġ a",
    "i n",
    "in g",
    "e r",
    "o n",
    "r e",
    "a n",
    "an d",
    "o u",
    "Ġ w",
    "Ġ s",
    "e n",
    "a t",
    "i s",
    "o r",
    "Ġ the",
    "Ġa nd",
    "Ġ o",
    "e s",
    "l l",
    "Ġ c",
    "l e",
    "a r",
    "s t",
    "Ġ b",
    "i t",
    "o m",
    "v e",
    "u r",
    "Ġ m",
    "Ġ f",
    "Ġ p",
    "c h",
    "Ġ i",
    "o w",
    "q u",
    "Ã ©",
    "Ã ¼",
    "ð Ł",
]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class Tiny:
    """One model: its shape, the type of its matrices, and the seed of its weights."""

    name: str
    architecture: str
    type: BlockType
    pretokenizer: str
    heads: int
    kv_heads: int
    tied: bool
    seed: int

    @property
    def head_size(self) -> int:
        return WIDTH // self.heads


MODELS = (
    Tiny("tiny-llama-f16", "llama", F16, "smollm", heads=4, kv_heads=2, tied=True, seed=1),
    Tiny("tiny-qwen3-f16", "qwen3", F16, "qwen2", heads=2, kv_heads=1, tied=False, seed=2),
    Tiny("tiny-qwen3-q1_0", "qwen3", Q1_0, "qwen2", heads=2, kv_heads=2, tied=True, seed=3),
    Tiny("tiny-qwen3-q2_0", "qwen3", Q2_0, "qwen2", heads=2, kv_heads=1, tied=False, seed=4),
)


def vocabulary() -> list[str]:
    """The special tokens, a token a byte in its printable spelling, a token a merge."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return [
        *SPECIAL,
        *map(chr, visible),
        *(chr(256 + i) for i in range(len(hidden))),
        *(m.replace(" ", "") for m in MERGES),
    ]


def write(path, tiny: Tiny) -> None:
    """Writes the model's GGUF file."""
    random = np.random.RandomState(tiny.seed)
    shapes = tensors(tiny)
    with writing(path, entries(tiny), [TensorSpec(name, shape, kind) for name, shape, kind in shapes]) as out:
        for name, shape, kind in shapes:
            out.write(quantize(weights(random, name, shape), kind).tobytes())


def tensors(tiny: Tiny) -> list[tuple[str, tuple[int, ...], BlockType]]:
    head, n_vocab = tiny.head_size, len(vocabulary())
    found = [("token_embd.weight", (WIDTH, n_vocab), tiny.type), ("output_norm.weight", (WIDTH,), F32)]
    if not tiny.tied:
        found.append(("output.weight", (WIDTH, n_vocab), tiny.type))
    for i in range(LAYERS):
        layer = [
            ("attn_norm", (WIDTH,), F32),
            ("attn_q", (WIDTH, tiny.heads * head), tiny.type),
            ("attn_k", (WIDTH, tiny.kv_heads * head), tiny.type),
            ("attn_v", (WIDTH, tiny.kv_heads * head), tiny.type),
            ("attn_output", (tiny.heads * head, WIDTH), tiny.type),
            ("ffn_norm", (WIDTH,), F32),
            ("ffn_gate", (WIDTH, HIDDEN), tiny.type),
            ("ffn_up", (WIDTH, HIDDEN), tiny.type),
            ("ffn_down", (HIDDEN, WIDTH), tiny.type),
        ]
        if tiny.architecture == "qwen3":
            layer += [("attn_q_norm", (head,), F32), ("attn_k_norm", (head,), F32)]
        found += [(f"blk.{i}.{name}.weight", shape, kind) for name, shape, kind in layer]
    return found


def weights(random: np.random.RandomState, name: str, shape: tuple[int, ...]):
    """float32: about 1 for norms; for matrices evenly spread around 0, so that outputs are about as wide as inputs."""
    values = random.randint(-127, 128, int(np.prod(shape))).astype(np.float32)
    if len(shape) == 1:
        return np.float32(1) + values / np.float32(512)
    values = values.reshape(shape[::-1]) / np.float32(1024)
    if name in ("token_embd.weight", "output.weight"):
        # What is not plain text is rarely said, so that answers can be read and now and then break off in a character.
        spellings = vocabulary()
        rare = [len(SPECIAL) <= i < len(SPECIAL) + 256 and not " " < s[0] <= "~" for i, s in enumerate(spellings)]
        values[np.array(rare)] *= np.float32(0.5)
    return values.reshape(-1)


def entries(tiny: Tiny) -> list[tuple[str, bytes]]:
    spellings = vocabulary()
    types = [CONTROL if token in SPECIAL else NORMAL for token in spellings]

    def text(value):
        return encode_value(ValueType.STRING, value)

    def count(value):
        return encode_value(ValueType.UINT32, value)

    def number(value):
        return encode_value(ValueType.FLOAT32, value)

    shape = {
        "context_length": count(4096),
        "embedding_length": count(WIDTH),
        "block_count": count(LAYERS),
        "feed_forward_length": count(HIDDEN),
        "attention.head_count": count(tiny.heads),
        "attention.head_count_kv": count(tiny.kv_heads),
        "attention.key_length": count(tiny.head_size),
        "attention.value_length": count(tiny.head_size),
        "attention.layer_norm_rms_epsilon": number(1e-6),
        "rope.dimension_count": count(tiny.head_size),
        "rope.freq_base": number(10000.0),
        "vocab_size": count(len(spellings)),
    }
    return [
        ("general.architecture", text(tiny.architecture)),
        ("general.name", text(tiny.name)),
        *((f"{tiny.architecture}.{key}", value) for key, value in shape.items()),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text(tiny.pretokenizer)),
        ("tokenizer.ggml.tokens", encode_array(ValueType.STRING, spellings)),
        ("tokenizer.ggml.token_type", encode_array(ValueType.INT32, types)),
        ("tokenizer.ggml.merges", encode_array(ValueType.STRING, MERGES)),
        ("tokenizer.ggml.bos_token_id", count(0)),
        ("tokenizer.ggml.eos_token_id", count(2)),
        ("tokenizer.ggml.add_bos_token", encode_value(ValueType.BOOL, False)),
        ("tokenizer.chat_template", text(TEMPLATE)),
    ]
