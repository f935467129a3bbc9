"""A model for clients that use tools: what it says next depends on the last token alone.

It answers a request with tools by a call, the result of a tool, or a request without tools, by "Done.". Attention and
feed-forward add nothing, so that each token's embedding, a column of its own, chooses the next by the output's rows.
"""

from pathlib import Path

import numpy as np

from bankml.gguf.block_types import F16, F32, BlockType
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_array, encode_value, writing
from tests.end_to_end.tiny import CONTROL, MERGES, NORMAL, SPECIAL, vocabulary

NAME = "calling-llama-f16"
WIDTH, HIDDEN, HEADS = 128, 128, 2
CALL, CALLED = "<tool_call>", "</tool_call>"
USER_DEFINED = 4
TOKENS = [*vocabulary(), CALL, CALLED]
NEWLINE, RETURN = "Ċ", "č"
"""The printable stand-ins of the two bytes that end the generation prompt."""

SAYS = {
    NEWLINE: CALL,
    CALL: NEWLINE,
    CALLED: "<|im_end|>",
    RETURN: "D",
    "D": "o",
    "o": "n",
    "n": "e",
    "e": ".",
    ".": "<|im_end|>",
}
"""Each token's successor. Every other's is a quote where a grammar allows one, so that texts in JSON stay empty, else
the end of a call."""

TEMPLATE = """\
{%- if tools %}<|im_start|>system
Tools: {{ tools | tojson }}<|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.content %}{{ m.content }}{% endif %}
{%- for call in m.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{%- if tools and messages[-1].role != "tool" %}{{ "\\n" }}{% else %}{{ "\\r" }}{% endif %}{% endif %}"""


def write_calling_model(path: Path) -> None:
    column = {token: i + 1 for i, token in enumerate(SAYS)}
    embedding = np.zeros((len(TOKENS), WIDTH), np.float16)
    output = np.zeros((len(TOKENS), WIDTH), np.float16)
    for id_, token in enumerate(TOKENS):
        embedding[id_, column.get(token, 0)] = 1
    for token, after in SAYS.items():
        output[TOKENS.index(after), column[token]] = 4
    output[TOKENS.index('"'), 0] = 3
    for last in (0, column[NEWLINE]):
        output[TOKENS.index(CALLED), last] = 2
    special = {"token_embd.weight": embedding, "output.weight": output}
    shapes = _shapes()
    with writing(path, _entries(), [TensorSpec(name, shape, kind) for name, shape, kind in shapes]) as out:
        for name, shape, kind in shapes:
            nothing = np.zeros(shape[::-1], np.float16)
            values = np.ones(shape, np.float32) if kind is F32 else special.get(name, nothing)
            out.write(values.tobytes())


def _shapes() -> list[tuple[str, tuple[int, ...], BlockType]]:
    square, vocabulary_ = (WIDTH, WIDTH), (WIDTH, len(TOKENS))
    layer = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    return [
        ("token_embd.weight", vocabulary_, F16),
        ("output.weight", vocabulary_, F16),
        ("output_norm.weight", (WIDTH,), F32),
        *((f"blk.0.{name}.weight", square, F16) for name in layer),
        *((f"blk.0.{name}.weight", (WIDTH,), F32) for name in ("attn_norm", "ffn_norm")),
    ]


def _entries() -> list[tuple[str, bytes]]:
    def count(value: int) -> bytes:
        return encode_value(ValueType.UINT32, value)

    def text(value: str) -> bytes:
        return encode_value(ValueType.STRING, value)

    kinds = [CONTROL if one in SPECIAL else USER_DEFINED if one in (CALL, CALLED) else NORMAL for one in TOKENS]
    shape = {
        "context_length": 32768, "embedding_length": WIDTH, "block_count": 1, "feed_forward_length": HIDDEN,
        "attention.head_count": HEADS, "attention.head_count_kv": HEADS, "attention.key_length": WIDTH // HEADS,
        "attention.value_length": WIDTH // HEADS, "rope.dimension_count": WIDTH // HEADS, "vocab_size": len(TOKENS),
    }  # fmt: skip
    return [
        ("general.architecture", text("llama")),
        ("general.name", text(NAME)),
        *((f"llama.{key}", count(value)) for key, value in shape.items()),
        ("llama.attention.layer_norm_rms_epsilon", encode_value(ValueType.FLOAT32, 1e-6)),
        ("llama.rope.freq_base", encode_value(ValueType.FLOAT32, 10000.0)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("smollm")),
        ("tokenizer.ggml.tokens", encode_array(ValueType.STRING, TOKENS)),
        ("tokenizer.ggml.token_type", encode_array(ValueType.INT32, kinds)),
        ("tokenizer.ggml.merges", encode_array(ValueType.STRING, MERGES)),
        ("tokenizer.ggml.bos_token_id", count(0)),
        ("tokenizer.ggml.eos_token_id", count(2)),
        ("tokenizer.ggml.add_bos_token", encode_value(ValueType.BOOL, False)),
        ("tokenizer.chat_template", text(TEMPLATE)),
    ]
