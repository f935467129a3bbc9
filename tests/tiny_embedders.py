"""Small models that embed: BERT, Nomic BERT, a reranker of each kind, and a decoder that pools."""

import numpy as np

from bankml.gate.verify import record, verify
from bankml.gguf.block_types import F16, F32
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_array, encode_value, writing
from bankml.model.config import configured, expected_tensors
from tests.tiny_architectures import values
from tests.tiny_model import N_VOCAB, count, text, vocabulary_entries

WIDTH, N_FF, HEADS, CONTEXT = 64, 96, 2, 300
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDPIECE = [*SPECIAL, *(f"\u2581{letter}" for letter in LETTERS), *LETTERS, "\u2581.", "\u2581,", "\u2581?"]
RERANK_TEMPLATE = "<q>{query}</q><d>{document}</d>"

ENCODER = {"attention.layer_norm_epsilon": 1e-12, "attention.causal": False}
DECODER = {
    "attention.layer_norm_rms_epsilon": 1e-6,
    "attention.head_count_kv": 1,
    "attention.key_length": 32,
    "attention.value_length": 32,
}
BIASES = ("attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "ffn_up.bias", "ffn_down.bias")
CLASSIFIER = ("cls.weight", "cls.bias", "cls.output.weight", "cls.output.bias")

# name: architecture, keys, a layer's optional tensors, the model's
EMBEDDERS = {
    "bert": ("bert", ENCODER | {"pooling_type": 1}, BIASES, ("token_types.weight",)),
    "bert-fused": ("bert", ENCODER | {"pooling_type": 2}, ("attn_qkv", "attn_qkv.bias"), ()),
    "bert-parts": ("bert", ENCODER | {"pooling_type": 1}, ("attn_qkv", *BIASES), ()),
    "bert-reranker": ("bert", ENCODER | {"pooling_type": 4}, BIASES, ("token_types.weight", *CLASSIFIER)),
    "nomic-bert": (
        "nomic-bert",
        ENCODER | {"pooling_type": 1, "rope.freq_base": 1000.0},
        ("attn_qkv",),
        ("token_types.weight",),
    ),
    "qwen3-embedding": ("qwen3", DECODER | {"pooling_type": 3}, (), ()),
    "qwen3-reranker": (
        "qwen3",
        DECODER | {"pooling_type": 4, "classifier.output_labels": ["yes", "no"]},
        (),
        ("cls.output.weight",),
    ),
}


def _entry(key, value):
    if isinstance(value, list):
        return key, encode_array(ValueType.STRING, value)
    kinds = {bool: ValueType.BOOL, int: ValueType.UINT32, float: ValueType.FLOAT32, str: ValueType.STRING}
    return key, encode_value(kinds[type(value)], value)


def _is_encoder(name):
    return EMBEDDERS[name][0] != "qwen3"


def metadata_of(name):
    """The metadata of a tiny model, without its vocabulary."""
    architecture, keys, _, _ = EMBEDDERS[name]
    base = {
        "block_count": 2,
        "context_length": CONTEXT if _is_encoder(name) else 4096,
        "embedding_length": WIDTH,
        "feed_forward_length": N_FF,
        "attention.head_count": HEADS,
    }
    types = {"tokenizer.ggml.token_type_count": 2} if _is_encoder(name) else {}
    own = {f"{architecture}.{key}": value for key, value in (base | keys).items()}
    return {"general.architecture": architecture} | types | own


def specs_of(name):
    _, _, optional, shared = EMBEDDERS[name]
    layer = [f"blk.{i}.{one}{'' if one.endswith('.bias') else '.weight'}" for i in range(2) for one in optional]
    n_vocab = len(WORDPIECE) if _is_encoder(name) else N_VOCAB
    config = configured(metadata_of(name), {"token_embd.weight": (WIDTH, n_vocab)} | dict.fromkeys(shared, ()))
    whole = ("position_embd.weight", "token_types.weight")
    return [
        TensorSpec(tensor, extents, F32 if len(extents) == 1 or tensor in whole else F16)
        for tensor, extents in expected_tensors(config, [*layer, *shared]).items()
    ]


def wordpiece_entries():
    return [
        text("tokenizer.ggml.model", "bert"),
        ("tokenizer.ggml.tokens", encode_array(ValueType.STRING, WORDPIECE)),
        ("tokenizer.ggml.token_type", encode_array(ValueType.INT32, [3] * 5 + [1] * (len(WORDPIECE) - 5))),
        count("tokenizer.ggml.padding_token_id", 0),
        count("tokenizer.ggml.unknown_token_id", 1),
        count("tokenizer.ggml.bos_token_id", 2),
        count("tokenizer.ggml.cls_token_id", 2),
        count("tokenizer.ggml.seperator_token_id", 3),
        count("tokenizer.ggml.mask_token_id", 4),
    ]


def vocabulary_of(name):
    if _is_encoder(name):
        return wordpiece_entries()
    ends = [("tokenizer.ggml.add_eos_token", encode_value(ValueType.BOOL, True))]
    template = [text("tokenizer.chat_template.rerank", RERANK_TEMPLATE)] if name == "qwen3-reranker" else []
    return [*vocabulary_entries(), count("tokenizer.ggml.bos_token_id", 256), *ends, *template]


def tiny_embedder(folder, name, extra=()):
    """Writes `NAME.gguf` and its record into `folder`; returns it verified. `extra` are more entries of its header."""
    rng, path, specs = np.random.default_rng(11), folder / f"{name}.gguf", specs_of(name)
    entries = [_entry(key, value) for key, value in metadata_of(name).items()]
    with writing(path, [*entries, *vocabulary_of(name), *extra], specs) as out:
        for spec in specs:
            out.write(values(rng, spec).astype(np.float32 if spec.type is F32 else np.float16).tobytes())
    fork = folder / f"{name}.gguf.FORK.json"
    record(path, fork)
    return verify(path, fork)


def sentence(n):
    """A text of n words of one letter each, which are n tokens of either vocabulary, or nearly."""
    return " ".join("abcdefghij"[(7 * i * i + 3 * i) % 10] for i in range(n))
