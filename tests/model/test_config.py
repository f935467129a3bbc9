"""Which models are supported and which are refused, from the header alone, with the key or the tensor named."""

import subprocess
import sys
from array import array
from types import SimpleNamespace

import pytest

from bankml import _native
from bankml.errors import Refused
from bankml.gguf.block_types import BLOCK_TYPES
from bankml.gguf.header import TensorInfo
from bankml.model.config import expected_tensors, read_config
from bankml.model.shape import ExpertsShape, YarnConfig

F32, F16, Q1_0, Q2_0, Q8_1, NVFP4 = (BLOCK_TYPES[i] for i in (0, 1, 41, 42, 9, 40))


def header(architecture="llama", kind=F16, tied=True, keys=None, tensors=None, optional=()):
    """A header of a supported model; `keys` replaces metadata (None removes), `tensors` names types or shapes,
    `optional` optional tensors."""
    metadata = {
        "general.architecture": architecture,
        f"{architecture}.block_count": 2,
        f"{architecture}.context_length": 1024,
        f"{architecture}.embedding_length": 256,
        f"{architecture}.feed_forward_length": 512,
        f"{architecture}.attention.head_count": 4,
        f"{architecture}.attention.head_count_kv": 2,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.tokens": [b"x"] * 300,
    }
    for key, value in (keys or {}).items():
        metadata[key] = value
    metadata = {key: value for key, value in metadata.items() if value is not None}
    shape = SimpleNamespace(
        n_embd=256,
        n_ff=512,
        n_vocab=300,
        heads=4,
        kv_heads=2,
        head_size=64,
        n_layer=2,
        architecture=architecture,
        tied=tied,
        rotated=64,
        q_width=256,
        kv_width=128,
        qkv_width=512,
        experts=ExpertsShape(8, 2, 64),
        classes=1,
    )
    infos = []
    for name, expected in expected_tensors(shape, optional).items():
        change = (tensors or {}).get(name, "as it is")
        if change is None:
            continue
        extents = change if isinstance(change, tuple) else expected
        of = change if hasattr(change, "weights") else (kind if len(extents) > 1 else F32)
        infos.append(TensorInfo(name, extents, of, 0, 0))
    infos += [
        TensorInfo(name, (64,), F32, 0, 0) for name in (tensors or {}) if name not in expected_tensors(shape, optional)
    ]
    return SimpleNamespace(metadata=metadata, tensors=tuple(infos))


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
@pytest.mark.parametrize("kind", [F16, Q1_0, Q2_0])
@pytest.mark.parametrize("tied", [True, False])
def test_what_is_supported(architecture, kind, tied):
    shape = read_config(header(architecture, kind, tied))
    assert (shape.architecture, shape.tied) == (architecture, tied)
    assert (shape.heads, shape.kv_heads, shape.head_size, shape.n_vocab) == (4, 2, 64, 300)
    assert (shape.rope.factor, shape.rope.yarn) == (1.0, None)
    assert shape.qkv_width == 512


def test_yarn_where_the_header_asks():
    keys = {"qwen3.rope.scaling.type": "yarn", "qwen3.rope.scaling.factor": 4.0}
    rope = read_config(header("qwen3", keys=keys | {"qwen3.rope.scaling.original_context_length": 512})).rope
    assert (rope.factor, rope.original_context, rope.yarn) == (4.0, 512, YarnConfig())


@pytest.mark.parametrize("kind,factor", [("none", 1.0), ("linear", 4.0), (None, 4.0)])
def test_positions_are_divided_where_the_header_asks(kind, factor):
    rope = read_config(header("qwen3", keys={"qwen3.rope.scaling.type": kind, "qwen3.rope.scaling.factor": 4.0})).rope
    assert (rope.factor, rope.yarn) == (factor, None)


@pytest.mark.parametrize(
    "change,says",
    [
        ({"keys": {"general.architecture": "mamba"}}, "general.architecture is 'mamba'"),
        ({"keys": {"general.architecture": None}}, "general.architecture is None"),
        ({"keys": {"general.type": "adapter"}}, "general.type is 'adapter'"),
        ({"keys": {"llama.block_count": None}}, "llama.block_count is missing"),
        ({"keys": {"llama.block_count": 0}}, "llama.block_count is 0, outside 1 to 1024"),
        ({"keys": {"llama.block_count": 1 << 40}}, "llama.block_count is"),
        ({"keys": {"llama.block_count": True}}, "llama.block_count is not one whole number"),
        ({"keys": {"llama.attention.head_count": [4, 4]}}, "llama.attention.head_count is not one whole number"),
        ({"keys": {"llama.attention.head_count_kv": 3}}, "4 heads do not share 3 K/V heads evenly"),
        ({"keys": {"llama.attention.value_length": 32}}, "value_length differs"),
        ({"keys": {"llama.rope.dimension_count": 32}}, "rope.dimension_count differs"),
        ({"keys": {"llama.attention.key_length": 63, "llama.attention.value_length": 63}}, "the head size is 63"),
        ({"keys": {"llama.attention.key_length": 512, "llama.attention.value_length": 512}}, "the head size is 512"),
        ({"keys": {"llama.attention.layer_norm_rms_epsilon": float("nan")}}, "rms_epsilon is not a positive number"),
        ({"keys": {"llama.attention.layer_norm_rms_epsilon": "1e-5"}}, "rms_epsilon is not a positive number"),
        ({"keys": {"llama.attn_logit_softcapping": 50.0}}, "llama.attn_logit_softcapping is 50.0"),
        ({"keys": {"llama.expert_count": 8}}, "llama.expert_count is 8"),
        ({"keys": {"llama.attention.scale": 0.5}}, "llama.attention.scale is 0.5"),
        ({"keys": {"llama.embedding_scale": 12.0}}, "llama.embedding_scale is 12.0"),
        ({"keys": {"llama.rope.scaling.type": "longrope"}}, "llama.rope.scaling.type is 'longrope'"),
        ({"keys": {"llama.rope.scaling.factor": -4.0}}, "llama.rope.scaling.factor is not a positive number"),
        ({"keys": {"llama.rope.freq_base": 1e-45}}, "llama.rope.freq_base is 1e-45, below 1"),
        ({"keys": {"split.count": 5}}, "split.count is 5: it is one part of a model"),
        ({"keys": {"tokenizer.ggml.tokens": [b"x"] * 299}}, "has 299 tokens, token_embd.weight 300 rows"),
        ({"tensors": {"blk.1.attn_norm.weight": F16}}, "tensor 'blk.1.attn_norm.weight' is F16, not F32"),
        ({"tensors": {"output.bias": F32}}, "tensor 'output.bias' is not part of the llama architecture"),
        ({"tensors": {"rope_freqs.weight": F32}}, "tensor 'rope_freqs.weight' has shape [64], not [32]"),
        ({"tensors": {"blk.0.attn_q.bias": F32}}, "tensor 'blk.0.attn_q.bias' has shape [64], not [256]"),
        (
            {"tensors": {"blk.0.attn_q_norm.weight": F32}},
            "'blk.0.attn_q_norm.weight' is not part of the llama architecture",
        ),
        ({"tensors": {"blk.1.ffn_down.weight": None}}, "tensor 'blk.1.ffn_down.weight' is missing"),
        ({"tensors": {"token_embd.weight": None}}, "tensor 'token_embd.weight' is missing"),
        (
            {"tensors": {"blk.1.ffn_down.weight": (512, 255)}},
            "'blk.1.ffn_down.weight' has shape [512, 255], not [512, 256]",
        ),
        ({"tensors": {"token_embd.weight": (255, 300)}}, "'token_embd.weight' has shape [255, 300]"),
    ],
)
def test_what_is_refused(change, says):
    with pytest.raises(Refused) as refusal:
        read_config(header(**change))
    assert refusal.value.message.startswith("unsupported model: ")
    assert says in refusal.value.message


def test_weight_types_may_be_mixed():
    changes = {"blk.1.ffn_up.weight": Q1_0, "blk.0.attn_k.weight": Q2_0, "token_embd.weight": Q1_0}
    assert read_config(header(tensors=changes)).n_layer == 2


def test_a_type_that_is_not_supported_is_named_with_those_that_are():
    supported = ", ".join(one.name for one in _native.weight_formats())
    with pytest.raises(Refused) as refusal:
        read_config(header(kind=Q8_1))
    assert refusal.value.message == f"unsupported weight type Q8_1 (supported: {supported})"
    with pytest.raises(Refused, match=r"unsupported weight types NVFP4 and Q8_1 \(supported: "):
        read_config(header(tensors={"blk.1.ffn_up.weight": Q8_1, "blk.0.attn_k.weight": NVFP4}))


def test_rows_of_quantized_weights_are_whole_blocks():
    ffn = {f"blk.{i}.ffn_{n}.weight": (256, 576) for i in (0, 1) for n in ("gate", "up")}
    odd = header(
        "llama",
        Q1_0,
        keys={"llama.feed_forward_length": 576},
        tensors=ffn | {f"blk.{i}.ffn_down.weight": (576, 256) for i in (0, 1)},
    )
    with pytest.raises(Refused, match="rows of 576 weights, not whole blocks"):
        read_config(odd)


@pytest.mark.parametrize(
    "key",
    ["general.type", "split.count", "llama.rope.scaling.type", "llama.attention.sliding_window"],
)
@pytest.mark.parametrize("value", ["\x1b" * 100_000, b"\xff" * 100_000, array("I", range(100_000)), (array("I"),)])
def test_of_a_value_a_little_is_told(key, value):
    with pytest.raises(Refused) as refusal:
        read_config(header(keys={key: value}))
    assert f"{key} is " in str(refusal.value) and len(str(refusal.value)) < 500


def test_a_header_is_judged_without_numpy():
    """libbankml judges it before it loads numpy, whose OpenBLAS ends the process where memory is short."""
    code = "import sys, bankml.model.config as c; c._native.weight_formats(); print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "False\n"
