import math
import struct
from types import SimpleNamespace

import gguf as second_opinion
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.errors import BankmlError
from bankml.gguf.block_types import BLOCK_TYPES, F16, F32, Q2_0, Q8_0
from bankml.gguf.header import BadHeader, read_header
from bankml.gguf.values import FORMATS, StringArray, ValueType, shown
from bankml.gguf.writer import PAD_BYTES, TensorSpec, TensorWriter, encode_array, encode_value, writing
from tests.attacks.build import ARCH, STRING, array, gguf, key, string, tensor, u32

NUMBERS = {
    ValueType.UINT8: 255,
    ValueType.INT8: -128,
    ValueType.UINT16: 65535,
    ValueType.INT16: -32768,
    ValueType.UINT32: 2**32 - 1,
    ValueType.INT32: -(2**31),
    ValueType.FLOAT32: 0.5,
    ValueType.BOOL: True,
    ValueType.UINT64: 2**64 - 1,
    ValueType.INT64: -(2**63),
    ValueType.FLOAT64: math.pi,
}


def read(tmp_path, raw):
    path = tmp_path / "x.gguf"
    path.write_bytes(raw)
    return read_header(path)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_number_alone_and_in_an_array(tmp_path, kind):
    value = NUMBERS[kind]
    packed = struct.pack("<" + FORMATS[kind], value)
    header = read(tmp_path, gguf((key("one", kind, packed), array("many", kind, 3, packed * 3), u32("after", 7))))
    assert header.metadata["one"] == value and type(header.metadata["one"]) is type(value)
    assert header.metadata["many"].tolist() == [value] * 3
    assert header.metadata["many"].typecode == ("B" if kind is ValueType.BOOL else FORMATS[kind])
    assert header.metadata["after"] == 7


def test_strings_keep_their_bytes(tmp_path):
    tokens = [b"a", b"", b"\xff\xfe", "Ġé".encode(), b"x" * 1000]
    raw = gguf(
        (
            string("good", "é\0"),
            string("bad", b"\xff"),
            array("t", STRING, 5, b"".join(map(_text, tokens))),
            u32("z", 1),
        )
    )
    metadata = read(tmp_path, raw).metadata
    assert metadata["good"] == "é\0"
    assert metadata["bad"] == b"\xff"
    strings = metadata["t"]
    assert isinstance(strings, StringArray)
    assert list(strings) == tokens and strings[-1] == tokens[-1] and strings[1:3] == tokens[1:3] and len(strings) == 5
    with pytest.raises(IndexError):
        strings[5]


def _text(raw):
    return struct.pack("<Q", len(raw)) + raw


def test_the_last_of_two_keys_counts_and_is_the_one_encoded(tmp_path):
    header = read(tmp_path, gguf((ARCH, u32("k", 1), string("k", "two"))))
    assert header.metadata["k"] == "two"
    assert header.encoded("k") == encode_value(ValueType.STRING, "two")
    assert list(header.metadata) == ["general.architecture", "k"]


def test_arrays_within_arrays(tmp_path):
    inner = struct.pack("<IQII", 4, 2, 7, 8)
    header = read(tmp_path, gguf((array("k", 9, 2, inner + struct.pack("<IQ", 8, 1) + _text(b"s")), u32("z", 1))))
    numbers, strings = header.metadata["k"]
    assert numbers.tolist() == [7, 8] and list(strings) == [b"s"]


def test_tensors_and_their_places(tmp_path):
    infos = (tensor("a", (64, 3), 8, 0), tensor("b", (5,), 0, 256), tensor("c", (64, 2, 2), 42, 320))
    header = read(tmp_path, gguf((ARCH, u32("general.alignment", 64)), infos, 320 + 72, pad=64))
    assert [(t.name, t.shape, t.type, t.offset, t.nbytes) for t in header.tensors] == [
        ("a", (64, 3), Q8_0, 0, 204),
        ("b", (5,), F32, 256, 20),
        ("c", (64, 2, 2), Q2_0, 320, 72),
    ]
    assert header.alignment == 64 and header.data_offset % 64 == 0
    assert header.data_offset + 320 + 72 == header.file_size


def test_block_sizes_are_those_of_gguf_py():
    for type_, (weights, size) in second_opinion.GGML_QUANT_SIZES.items():
        # Its Q8_1 has two f32 where ggml has two f16; the oracle tests hold the whole table against ggml's own.
        if type_.value in BLOCK_TYPES and type_.name != "Q8_1" and type_.value < 41:
            row = BLOCK_TYPES[type_.value]
            assert (row.weights, row.size) == (weights, size), row.name


def test_gguf_py_reads_what_is_written_and_the_other_way_round(tmp_path):
    path = tmp_path / "ours.gguf"
    entries = [
        ("general.architecture", encode_value(ValueType.STRING, "llama")),
        ("tokenizer.ggml.tokens", encode_array(ValueType.STRING, ["a", "é"])),
        ("tokenizer.ggml.token_type", encode_array(ValueType.INT32, [1, -3])),
        ("llama.eps", encode_value(ValueType.FLOAT32, 0.25)),
    ]
    data = np.arange(12, dtype="<f4")
    with writing(path, entries, [TensorSpec("m", (4, 3), F32), TensorSpec("h", (8,), F16)]) as out:
        out.write(data[:5].tobytes())
        out.write(data[5:].tobytes())
        out.write(bytes(16))
    theirs = second_opinion.GGUFReader(path)
    assert theirs.fields["tokenizer.ggml.tokens"].contents() == ["a", "é"]
    assert [t.name for t in theirs.tensors] == ["m", "h"]
    np.testing.assert_array_equal(theirs.tensors[0].data, data.reshape(3, 4))

    other = tmp_path / "theirs.gguf"
    writer = second_opinion.GGUFWriter(other, "llama")
    writer.add_array("numbers", [1, 2, 3])
    writer.add_array("words", ["x", "yz"])
    writer.add_tensor("m", data.reshape(3, 4))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header = read_header(other)
    assert header.metadata["numbers"].tolist() == [1, 2, 3]
    assert list(header.metadata["words"]) == [b"x", b"yz"]
    assert header.tensors[0].shape == (4, 3)


def test_an_unfinished_file_leaves_nothing(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"old")
    specs = [TensorSpec("m", (8,), F32)]
    with pytest.raises(ValueError, match="not complete"), writing(path, [], specs) as out:
        out.write(bytes(31))
    with pytest.raises(ValueError, match="takes 32 bytes"), writing(path, [], specs) as out:
        out.write(bytes(33))
    with pytest.raises(KeyboardInterrupt), writing(path, [], specs) as out:
        out.write(bytes(32))
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_names_are_shown_on_one_line():
    assert shown("a\x1b[2J\n") == "'a\\x1b[2J\\n'"
    assert shown(b"\xff") == "'\\xff'"
    assert len(shown("x" * 1000)) == 62


WHOLE = gguf(
    (
        ARCH,
        u32("llama.block_count", 1),
        array("w", STRING, 2, _text(b"a") + _text(b"bc")),
        array("n", 5, 2, bytes(8)),
        string("s", "t"),
    ),
    (tensor("a", (32, 2), 8, 0), tensor("b", (8,), 0, 96)),
    128,
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4),
    st.integers(0, len(WHOLE)),
)
def test_no_damage_ends_in_anything_but_a_refusal(tmp_path_factory, edits, cut):
    """Bytes of a good file overwritten and its end cut off: read whole or refused in one sentence, never a crash."""
    raw = bytearray(WHOLE)
    for at, piece in edits:
        raw[at : at + len(piece)] = piece
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(raw[: cut or None])
    try:
        header = read_header(path)
    except BankmlError as error:
        assert error.exit_code in (2, 3) and error.message.startswith("damaged.gguf: ")
        return
    for info in header.tensors:
        assert header.data_offset + info.offset + info.nbytes <= header.file_size


def test_reason_is_kept_apart_from_the_name(tmp_path):
    with pytest.raises(BadHeader) as caught:
        read(tmp_path, b"nope")
    assert caught.value.message == f"x.gguf: {caught.value.reason}"


def test_padding_is_written_in_pieces():
    """An alignment of a gigabyte is an alignment: what is written for it is zeros, and never all of them at once."""
    pieces = []
    out = SimpleNamespace(write=lambda data: pieces.append(len(data)))
    writer = TensorWriter(out, [TensorSpec("t", (8,), F32)], 1 << 30)
    writer.write(bytes(32))
    assert sum(pieces) == 1 << 30 and max(pieces) == PAD_BYTES
