from hashlib import sha256

import numpy as np
import pytest

from bankml.convert import requantize as convert_module
from bankml.convert.dequantize import dequantize
from bankml.convert.halves import to_f16
from bankml.convert.quantize import quantize
from bankml.convert.requantize import convert_gguf
from bankml.errors import FileProblem, Refused, UsageError
from bankml.gguf.block_types import BF16, BLOCK_TYPES, F16, F32, Q1_0, Q2_0, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0
from bankml.gguf.header import read_header
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_array, encode_value, writing

ROWS, COLUMNS = 6, 256
TYPES = [Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, F16, BF16, F32, Q1_0, Q2_0]


def blocks(type_, count, seed):
    """Random blocks whose scale (and minimum) is a tame f16."""
    rng = np.random.default_rng(seed)
    if type_ in (F32, F16, BF16):
        values = rng.standard_normal(count * type_.weights).astype(np.float32)
        return {
            F32: values.tobytes(),
            F16: to_f16(values).tobytes(),
            BF16: (values.view("<u4") >> 16).astype("<u2").tobytes(),
        }[type_]
    raw = rng.integers(0, 256, (count, type_.size), np.uint8)
    for at in (0, 2) if type_ in (Q4_1, Q5_1) else (0,):
        raw[:, at : at + 2] = to_f16(rng.standard_normal(count).astype(np.float32) / 8)[:, None].view(np.uint8)
    return raw.tobytes()


@pytest.fixture
def source(tmp_path):
    """A matrix of every type that is read, each with a norm after it."""
    path = tmp_path / "in.gguf"
    entries = [
        ("general.architecture", encode_value(ValueType.STRING, "llama")),
        ("general.alignment", encode_value(ValueType.UINT32, 64)),
        ("general.file_type", encode_value(ValueType.UINT32, 3)),
        ("odd", encode_value(ValueType.STRING, b"\xff")),
        ("tokens", encode_array(ValueType.STRING, ["a", "b"])),
    ]
    specs = []
    for type_ in TYPES:
        specs += [
            TensorSpec(f"{type_.name}.weight", (COLUMNS, ROWS), type_),
            TensorSpec(f"{type_.name}.norm", (40,), F16),
        ]
    with writing(path, entries, specs, 64) as out:
        for number, spec in enumerate(specs):
            out.write(blocks(spec.type, spec.nbytes // spec.type.size, number))
    return path


def tensors(path):
    header = read_header(path)
    raw = path.read_bytes()
    start = header.data_offset
    return header, {t.name: raw[start + t.offset : start + t.offset + t.nbytes] for t in header.tensors}


@pytest.mark.parametrize(
    ("type_", "file_type"),
    [
        (F32, 0),
        (F16, 1),
        (Q4_0, 2),
        (Q4_1, 3),
        (Q8_0, 7),
        (Q5_0, 8),
        (Q5_1, 9),
        (BLOCK_TYPES[12], 15),
        (BLOCK_TYPES[13], 17),
        (BLOCK_TYPES[14], 18),
        (BF16, 32),
        (Q1_0, 40),
        (Q2_0, 41),
    ],
)
def test_every_type_in_every_type_out(source, tmp_path, type_, file_type, monkeypatch):
    monkeypatch.setattr(convert_module, "CHUNK_WEIGHTS", 512)
    done = []
    out = tmp_path / "out.gguf"
    convert_gguf(source, out, type_.name.lower(), progress=done.append)
    before, old = tensors(source)
    after, new = tensors(out)
    assert sum(done) == sum(t.nbytes for t in before.tensors)
    assert list(after.metadata) == [*before.metadata, "general.quantization_version"]
    assert after.metadata["general.quantization_version"] == 2
    assert after.metadata["general.file_type"] == file_type and after.metadata["odd"] == b"\xff"
    assert after.alignment == 64 and [t.name for t in after.tensors] == [t.name for t in before.tensors]
    for was, now in zip(before.tensors, after.tensors, strict=True):
        weights = dequantize(old[was.name], was.type)
        assert now.shape == was.shape
        if len(was.shape) == 1:
            assert now.type is F32 and new[now.name] == weights.tobytes()
        else:
            assert now.type is type_
            assert new[now.name] == (old[was.name] if was.type is type_ else quantize(weights, type_).tobytes())


def test_dequantizing_by_hand():
    """One block of each layout, worked out weight by weight."""
    one, half = np.float16(1).tobytes(), np.float16(0.5).tobytes()
    codes = bytes(range(16))
    low, high = [n & 15 for n in codes], [n >> 4 for n in codes]
    assert dequantize(half + codes, Q4_0).tolist() == [(q - 8) / 2 for q in low + high]
    assert dequantize(half + one + codes, Q4_1).tolist() == [q / 2 + 1 for q in low + high]
    fifths = (0x80000001).to_bytes(4, "little")
    q5 = [q + 16 * (j in (0, 31)) for j, q in enumerate(low + high)]
    assert dequantize(one + fifths + codes, Q5_0).tolist() == [q - 16 for q in q5]
    assert dequantize(one + half + fifths + codes, Q5_1).tolist() == [q + 0.5 for q in q5]
    assert dequantize(half + bytes([128, 1] * 16), Q8_0).tolist() == [-64, 0.5] * 16
    assert dequantize(half + b"\x05" + bytes(15), Q1_0).tolist() == [0.5, -0.5, 0.5] + [-0.5] * 125
    assert dequantize(half + b"\xe4" * 16, Q2_0).tolist() == [-0.5, 0, 0.5, 1] * 16


def test_quantizing_by_hand():
    weights = np.array([3, -1, 0, -0.0] * 32, np.float32)
    assert quantize(weights, Q1_0).tobytes() == np.float16(1).tobytes() + b"\xdd" * 16
    # 1 / 2 is rounded away from zero, and nothing reaches the code for +2.
    ternary = np.array([2, 1, 0.99, -1] * 16, np.float32)
    assert quantize(ternary, Q2_0).tobytes() == np.float16(2).tobytes() + b"\x1a" * 16
    assert quantize(np.zeros(64, np.float32), Q2_0).tobytes() == bytes(2) + b"\x55" * 16


WEIGHTS = np.array([-3.5, -2, -1, -0.25, -0.0, 0, 0.125, 0.5, 1, 1.5, 2, 2.5, 3, 3.25, 3.5, 1e-3] * 2, np.float32)
SUBNORMAL = np.array([3e-39, -1e-39, 0, 1e-45] * 8, np.float32)


BLOCKS = [
    (Q4_0, WEIGHTS, "00370033667788888899aabbddeeffffff88"),
    (Q4_0, SUBNORMAL, "008000000000000000000000000000000000"),
    (Q4_1, WEIGHTS, "773700c30033557788888899aabbccddeeeeff88"),
    (Q4_1, SUBNORMAL, "0000008000000000000000000000000000000000"),
    (Q5_0, WEIGHTS, "0033f0fff0ff0077bbff00001122557799bbeeffff00"),
    (Q5_0, SUBNORMAL, "00800000000000000000000000000000000000000000"),
    (Q5_1, WEIGHTS, "3a3300c3f0fff0ff0077bbee00000022446688bbddeeff00"),
    (Q5_1, SUBNORMAL, "000000800000000000000000000000000000000000000000"),
    (Q8_0, WEIGHTS, "0e2781b7dcf7000005122436495b6d767f0081b7dcf7000005122436495b6d767f00"),
    (Q8_0, SUBNORMAL, "00000000000000000000000000000000000000000000000000000000000000000000"),
    (BF16, WEIGHTS, "60c000c080bf80be00800000003e003f803fc03f00402040404050406040833a" * 2),
    (BF16, SUBNORMAL, "21000b800000000021000b800000000021000b800000000021000b8000000000" * 2),
]


@pytest.mark.parametrize(("type_", "weights", "expected"), BLOCKS)
def test_blocks_that_ggml_wrote(type_, weights, expected):
    assert quantize(weights, type_).tobytes().hex() == expected


K_BLOCKS = [
    (12, "c48211f162cdb2bc7855a48d263b1d1c7f47560bbbf1398349968f91a26250ff"),
    (13, "e185b5047827bd536671d6503ed087feb80c33f5894a492e58d8e7d18209c918"),
    (14, "55c2f4e6303478ed480db2f362b38ccc24fc1183d0c0b7886779dcc6f53ea87c"),
]


@pytest.mark.parametrize(("number", "digest"), K_BLOCKS)
def test_k_blocks_that_ggml_wrote(number, digest):
    weights = (((np.arange(2048) * 7919) % 4001 - 1900) / np.float32(4096)).astype(np.float32)
    weights[256:512] = 0
    assert sha256(quantize(weights, BLOCK_TYPES[number]).tobytes()).hexdigest() == digest


def test_what_llama_quantize_leaves_alone_is_f32(tmp_path):
    names = (
        "token_embd.weight",
        "output.weight",
        "blk.0.ffn_gate_inp.weight",
        "blk.0.attn_q_norm.weight",
        "position_embd.weight",
        "blk.0.ffn_down_exps.weight",
        "rope_freqs.bias",
    )
    specs = [TensorSpec(name, (32, 2), F16) for name in names] + [TensorSpec("one_row.weight", (32, 1), F16)]
    entries = [("general.architecture", encode_value(ValueType.STRING, "llama"))]
    with writing(tmp_path / "in.gguf", entries, specs) as out:
        for spec in specs:
            out.write(bytes(spec.nbytes))
    convert_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", "q8_0")
    types = {tensor.name: tensor.type for tensor in read_header(tmp_path / "out.gguf").tensors}
    quantized = {"token_embd.weight", "output.weight", "blk.0.ffn_down_exps.weight"}
    assert types == {spec.name: Q8_0 if spec.name in quantized else F32 for spec in specs}


def test_bf16_keeps_what_f16_cannot_hold(tmp_path):
    write_one(tmp_path / "in.gguf", np.array([1e30, -65520], np.float32))
    convert_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", "bf16")
    raw = tensors(tmp_path / "out.gguf")[1]["w.weight"]
    assert np.frombuffer(raw, "<u2").tolist() == [0x714A, 0xC780] * 2
    write_one(tmp_path / "in.gguf", np.array([0x7F7F8000], np.uint32).view(np.float32))
    with pytest.raises(Refused, match="too large for bf16"):
        convert_gguf(tmp_path / "in.gguf", tmp_path / "other.gguf", "bf16")
    convert_gguf(tmp_path / "in.gguf", tmp_path / "other.gguf", "f32")


def write_one(path, values, type_=F32):
    """A model of one matrix, both of whose rows are `values`."""
    with writing(
        path,
        [("general.architecture", encode_value(ValueType.STRING, "llama"))],
        [TensorSpec("w.weight", (len(values), 2), type_)],
    ) as out:
        out.write(values.tobytes() * 2)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([np.nan], "not finite"),
        ([-np.inf], "not finite"),
        ([65520], "magnitude 65520, too large for f16"),
        ([-1e30], "too large for f16"),
    ],
)
def test_weights_that_mean_nothing_are_refused_and_nothing_is_left(tmp_path, values, says):
    write_one(tmp_path / "in.gguf", np.array(values * 128, np.float32))
    for outtype in ("f16", "q1_0", "q2_0", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"):
        with pytest.raises(Refused, match=f"^in.gguf: tensor 'w.weight' has a weight .*{says}"):
            convert_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", outtype)
    assert [path.name for path in tmp_path.iterdir()] == ["in.gguf"]


def test_the_largest_f16_is_kept(tmp_path):
    write_one(tmp_path / "in.gguf", np.array([65519.9, -65504], np.float32))
    convert_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", "f16")
    assert dequantize(tensors(tmp_path / "out.gguf")[1]["w.weight"], F16).tolist() == [65504, -65504] * 2


def test_a_file_type_that_was_missing_is_added(tmp_path):
    write_one(tmp_path / "in.gguf", np.zeros(128, np.float32))
    convert_gguf(tmp_path / "in.gguf", tmp_path / "out.gguf", "q1_0")
    assert read_header(tmp_path / "out.gguf").metadata["general.file_type"] == 40


def test_what_is_refused_before_anything_is_written(tmp_path):
    path, out = tmp_path / "in.gguf", tmp_path / "out.gguf"
    write_one(path, np.zeros(96, np.float32))
    with pytest.raises(
        Refused, match=r"^in.gguf: tensor 'w.weight' has rows of 96, not a multiple of 64, the block of Q2_0$"
    ):
        convert_gguf(path, out, "q2_0")
    write_one(path, np.zeros(96, np.int32), type_=BLOCK_TYPES[26])
    with pytest.raises(
        Refused, match=r"^in.gguf: tensor 'w.weight': unsupported weight type I32 \(supported: F32, F16, Q4_0, Q4_1"
    ):
        convert_gguf(path, out, "f16")
    write_one(path, np.zeros(96, np.float32))
    with pytest.raises(UsageError, match="is the input itself"):
        convert_gguf(path, path, "f16", overwrite=True)
    (tmp_path / "link").hardlink_to(path)
    with pytest.raises(UsageError, match="is the input itself"):
        convert_gguf(path, tmp_path / "link", "f16", overwrite=True)
    out.write_bytes(b"mine")
    with pytest.raises(UsageError, match="exists: give --force to replace it"):
        convert_gguf(path, out, "f16")
    assert out.read_bytes() == b"mine"
    convert_gguf(path, out, "f16", overwrite=True)
    assert read_header(out).tensors[0].type is F16
    with pytest.raises(FileProblem, match=r"^cannot write .*none/x: no such file or directory$"):
        convert_gguf(path, tmp_path / "none" / "x", "f16")
    with pytest.raises(UsageError, match="not a regular file"):
        convert_gguf(path, tmp_path, "f16", overwrite=True)


def test_an_input_that_changes_meanwhile_is_refused(source, tmp_path):
    def grow(count):
        with open(source, "ab") as file:
            file.write(b"x")

    with pytest.raises(Refused, match="changed while it was converted"):
        convert_gguf(source, tmp_path / "out.gguf", "f16", progress=grow)
    with pytest.raises(FileProblem, match="became shorter"):
        convert_gguf(source, tmp_path / "out.gguf", "f16", progress=lambda count: source.write_bytes(b""))
    assert not (tmp_path / "out.gguf").exists()
