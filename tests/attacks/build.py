"""Hostile and odd GGUF files, built field by field from what each is called.

    python -m tests.attacks.build FOLDER      writes every one of them

The writer of the package is not used: it could not write most of these.
"""

# ruff: noqa: E501 (one attack a line)
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

U8, U16, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 2, 4, 5, 6, 7, 8, 9, 10


def text(raw: bytes | str) -> bytes:
    raw = raw.encode() if isinstance(raw, str) else raw
    return struct.pack("<Q", len(raw)) + raw


def key(name: bytes | str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def u32(name: str, value: int) -> bytes:
    return key(name, U32, struct.pack("<I", value))


def string(name: bytes | str, value: bytes | str) -> bytes:
    return key(name, STRING, text(value))


def array(name: str, kind: int, count: int, body: bytes) -> bytes:
    return key(name, ARRAY, struct.pack("<IQ", kind, count) + body)


def tensor(name: bytes | str, dims: tuple[int, ...], type_id: int, offset: int, n_dims: int | None = None) -> bytes:
    shape = b"".join(struct.pack("<Q", dim) for dim in dims)
    return (
        text(name)
        + struct.pack("<I", len(dims) if n_dims is None else n_dims)
        + shape
        + struct.pack("<IQ", type_id, offset)
    )


ARCH = string("general.architecture", "llama")


def gguf(
    keys=(ARCH,), tensors=(), data: int = 0, *, version=3, magic=b"GGUF", n_keys=None, n_tensors=None, pad=32
) -> bytes:
    head = magic + struct.pack("<I", version)
    head += struct.pack("<Q", len(tensors) if n_tensors is None else n_tensors)
    head += struct.pack("<Q", len(keys) if n_keys is None else n_keys)
    head += b"".join(keys) + b"".join(tensors)
    if data:
        head += bytes(-len(head) % pad) + bytes(data)
    return head


def nested(depth: int) -> bytes:
    """An array of one array of one array ... of no numbers."""
    return key("k", ARRAY, struct.pack("<IQ", ARRAY, 1) * (depth - 1) + struct.pack("<IQ", U8, 0))


@dataclass(frozen=True)
class Attack:
    """`code` is what `bankml guard` must exit with, `says` a part of the line it must print."""

    name: str
    build: Callable[[], bytes]
    code: int
    says: str


def vocabulary(tokens: list[bytes], model: str, *more: bytes) -> bytes:
    counts = [u32(f"llama.{name}", 1) for name in ("block_count", "attention.head_count", "context_length")]
    sizes = [u32("llama.embedding_length", 32), u32("llama.feed_forward_length", 32)]
    listed = array("tokenizer.ggml.tokens", STRING, len(tokens), b"".join(map(text, tokens)))
    return gguf((ARCH, *counts, *sizes, string("tokenizer.ggml.model", model), listed, *more))


BYTES = [b"<0x%02X>" % value for value in range(256)]
HUGE = (1 << 64) - 1
BLOCKS = (u32("llama.block_count", 1 << 31), u32("llama.attention.head_count", 1 << 31))
LENGTHS = tuple(key(f"llama.attention.{kind}_length", U64, struct.pack("<Q", 1 << 40)) for kind in ("key", "value"))

ATTACKS = [
    Attack("empty", lambda: b"", 3, "needs 24 header bytes"),
    Attack("three bytes of magic", lambda: b"GGU", 3, "needs 24 header bytes"),
    Attack("only magic and version", lambda: gguf()[:8], 3, "header bytes: file truncated"),
    Attack("one wrong byte", lambda: b"X", 2, "bad magic"),
    Attack("another format", lambda: b"\x7fELF" + bytes(60), 2, "bad magic '\\x7fELF'"),
    Attack("old ggml file", lambda: b"tjgg" + bytes(60), 2, "bad magic"),
    Attack("version 0", lambda: gguf(version=0), 2, "GGUF version 0"),
    Attack("version 1", lambda: gguf(version=1), 2, "GGUF version 1"),
    Attack("version 2", lambda: gguf(version=2), 2, "GGUF version 2"),
    Attack("version 4", lambda: gguf(version=4), 2, "GGUF version 4"),
    Attack("big-endian", lambda: gguf(version=3 << 24), 2, "big-endian"),
    Attack("tensor count 2^62", lambda: gguf(n_tensors=1 << 62), 2, "4611686018427387904 tensors"),
    Attack("tensor count 2^64-1", lambda: gguf(n_tensors=HUGE), 2, "18446744073709551615 tensors"),
    Attack("tensor count 50000 in a small file", lambda: gguf(n_tensors=50_000), 3, "header bytes"),
    Attack("key count 2^63", lambda: gguf(n_keys=1 << 63), 2, "9223372036854775808 keys"),
    Attack("key count one too many", lambda: gguf(n_keys=2), 3, "header bytes"),
    Attack("key length 2^64-1", lambda: gguf((struct.pack("<Q", HUGE) + b"k" * 20,)), 2, "the name of key 0"),
    Attack("key length past the end", lambda: gguf((struct.pack("<Q", 4000) + b"k" * 20,)), 3, "header bytes"),
    Attack("empty key", lambda: gguf((string("", "x" * 8),)), 2, "empty name"),
    Attack("key with NUL", lambda: gguf((string("a\0b", "x"),)), 2, "NUL in its name 'a\\x00b'"),
    Attack("key not UTF-8", lambda: gguf((string(b"a\xff\xfe", "x"),)), 2, "not UTF-8"),
    Attack("key that paints the terminal", lambda: gguf((key("\x1b[2J\n\x07", 99, bytes(8)),)), 2, "unknown value type 99"),
    Attack("value type 13", lambda: gguf((key("k", 13, bytes(8)),)), 2, "unknown value type 13"),
    Attack("string length 2^64-1", lambda: gguf((key("k", STRING, struct.pack("<Q", HUGE) + b"xx"),)), 2, "the string of key 'k'"),
    Attack("string length 1000000", lambda: gguf((key("k", STRING, struct.pack("<Q", 1_000_000)),)), 3, "header bytes"),
    Attack("bool 2", lambda: gguf((ARCH, key("k", BOOL, b"\x02"))), 2, "bool of 2"),
    Attack("bool 255 in an array", lambda: gguf((ARCH, array("k", BOOL, 3, b"\0\1\xff"))), 2, "bool of 255"),
    Attack("array count 2^64-1", lambda: gguf((array("k", U32, HUGE, b""),)), 2, "the header would take"),
    Attack("array count wraps to 4 bytes", lambda: gguf((array("k", U32, (1 << 62) + 1, bytes(4)),)), 2, "the header would take"),
    Attack("array of u8 past the end", lambda: gguf((array("k", U8, 10_000_000, bytes(9)),)), 3, "header bytes"),
    Attack("array of 2^60 strings", lambda: gguf((array("k", STRING, 1 << 60, bytes(64)),)), 2, "strings that are read"),
    Attack("array of a million strings", lambda: gguf((array("k", STRING, 1_000_000, bytes(64)),)), 3, "header bytes"),
    Attack("array whose last string runs out", lambda: gguf((array("k", STRING, 2, text("a") + struct.pack("<Q", 99)),)), 3, "header bytes"),
    Attack("array string length 2^64-1", lambda: gguf((array("k", STRING, 2, struct.pack("<QQ", HUGE, 1)),)), 2, "the header would take"),
    Attack("array of unknown type", lambda: gguf((array("k", 77, 1, bytes(8)),)), 2, "unknown value type 77"),
    Attack("arrays 64 deep", lambda: gguf((ARCH, nested(64))), 0, "play"),
    Attack("arrays 65 deep", lambda: gguf((ARCH, nested(65))), 2, "nested deeper than 64"),
    Attack("arrays 5000 deep", lambda: gguf((ARCH, nested(5000))), 2, "nested deeper than 64"),
    Attack("arrays 60 deep, cut", lambda: gguf((ARCH, nested(60)))[:-9], 3, "header bytes"),
    Attack("a million arrays in an array", lambda: gguf((array("k", ARRAY, 1_000_000, bytes(12) * 9),)), 2, "arrays within arrays"),
    Attack("text past what is read", lambda: gguf([string(f"k{number}", "x" * (1 << 20)) for number in range(17)]), 2, "bytes of text that are read"),
    Attack("head counts of 70000 blocks", lambda: gguf((ARCH, array("llama.attention.head_count_kv", U8, 70_000, bytes(70_000)))), 2, "lists 70000 blocks"),
    Attack("architecture of 5000 letters", lambda: gguf((string("general.architecture", "x" * 5000),)), 2, "is 5000 characters long"),
    Attack("key twice", lambda: gguf((ARCH, string("general.architecture", "qwen3"))), 0, "qwen3"),
    Attack("architecture a number", lambda: gguf((u32("general.architecture", 1),)), 2, "general.architecture is an integer"),
    Attack("architecture an array", lambda: gguf((array("general.architecture", U8, 2, b"ab"),)), 2, "is an array, not a string"),
    Attack("architecture not UTF-8", lambda: gguf((string("general.architecture", b"\xc3\x28"),)), 2, "a string that is not UTF-8"),
    Attack("architecture missing", lambda: gguf((u32("k", 1),)), 0, "no architecture"),
    Attack("name a bool", lambda: gguf((ARCH, key("general.name", BOOL, b"\1"))), 2, "general.name is a bool"),
    Attack("block count a string", lambda: gguf((ARCH, string("llama.block_count", "1"))), 2, "'llama.block_count' is a string"),
    Attack("block count negative", lambda: gguf((ARCH, key("llama.block_count", I32, struct.pack("<i", -1)))), 2, "is -1, not a count"),
    Attack("head count zero", lambda: gguf((ARCH, u32("llama.embedding_length", 8), u32("llama.attention.head_count", 0))), 0, "play"),
    Attack("K/V size overflows", lambda: gguf((ARCH, *BLOCKS, *LENGTHS)), 2, "K/V size per token overflows"),
    Attack("alignment 0", lambda: gguf((ARCH, u32("general.alignment", 0))), 2, "general.alignment is 0"),
    Attack("alignment 3", lambda: gguf((ARCH, u32("general.alignment", 3))), 2, "general.alignment is 3"),
    Attack("alignment 2^63", lambda: gguf((ARCH, key("general.alignment", U64, struct.pack("<Q", 1 << 63)))), 2, "not a power of two"),
    Attack("alignment a float", lambda: gguf((ARCH, key("general.alignment", F32, struct.pack("<f", 32)))), 2, "is a float"),
    Attack("alignment a bool", lambda: gguf((ARCH, key("general.alignment", BOOL, b"\1"))), 2, "is a bool"),
    Attack("alignment negative", lambda: gguf((ARCH, key("general.alignment", I32, struct.pack("<i", -32)))), 2, "is -32"),
    Attack("alignment past the data", lambda: gguf((ARCH, u32("general.alignment", 1 << 30)), (tensor("t", (8,), 0, 0),), 32), 2, "has 0 before"),
    Attack("name of 64 bytes", lambda: gguf(tensors=(tensor("t" * 64, (8,), 0, 0),), data=32), 2, "64 bytes long, past the 63"),
    Attack("name length 2^64-1", lambda: gguf(tensors=(struct.pack("<Q", HUGE) + bytes(40),)), 2, "the name of tensor 0"),
    Attack("name empty", lambda: gguf(tensors=(tensor("", (8,), 0, 0) + bytes(8),), data=32), 2, "empty name"),
    Attack("name with NUL", lambda: gguf(tensors=(tensor("a\0b", (8,), 0, 0),), data=32), 2, "NUL in its name"),
    Attack("name not UTF-8", lambda: gguf(tensors=(tensor(b"\xff", (8,), 0, 0),), data=32), 2, "not UTF-8"),
    Attack("two tensors, one name", lambda: gguf(tensors=(tensor("t", (8,), 0, 0), tensor("t", (8,), 0, 32)), data=64), 2, "two tensors"),
    Attack("no dimensions", lambda: gguf(tensors=(tensor("t", (), 0, 0) + bytes(8),), data=32), 2, "0 dimensions"),
    Attack("five dimensions", lambda: gguf(tensors=(tensor("t", (1,) * 5, 0, 0),), data=32), 2, "5 dimensions"),
    Attack("2^32-1 dimensions", lambda: gguf(tensors=(tensor("t", (8,), 0, 0, n_dims=0xFFFFFFFF),), data=32), 2, "4294967295 dimensions"),
    Attack("dimension 0", lambda: gguf(tensors=(tensor("t", (8, 0), 0, 0),), data=32), 2, "dimension 1 out of range"),
    Attack("dimension 2^64-1", lambda: gguf(tensors=(tensor("t", (HUGE,), 0, 0),), data=32), 2, "dimension 0 out of range"),
    Attack("dimension 2^63", lambda: gguf(tensors=(tensor("t", (1 << 63,), 0, 0),), data=32), 2, "out of range"),
    Attack("dimensions wrap to 0", lambda: gguf(tensors=(tensor("t", (1 << 32, 1 << 32), 0, 0),), data=32), 2, "out of range"),
    Attack("dimensions wrap to 32", lambda: gguf(tensors=(tensor("t", (32, (1 << 59) + 1), 0, 0),), data=128), 2, "out of range"),
    Attack("bytes wrap", lambda: gguf(tensors=(tensor("t", ((1 << 62) + 8,), 0, 0),), data=32), 2, "needs"),
    Attack("type id 4", lambda: gguf(tensors=(tensor("t", (32,), 4, 0),), data=64), 2, "type id 4, a layout that was withdrawn"),
    Attack("type id 36", lambda: gguf(tensors=(tensor("t", (32,), 36, 0),), data=64), 2, "withdrawn"),
    Attack("type id 43", lambda: gguf(tensors=(tensor("t", (32,), 43, 0),), data=64), 2, "unknown type id 43"),
    Attack("type id 2^32-1", lambda: gguf(tensors=(tensor("t", (32,), 0xFFFFFFFF, 0),), data=64), 2, "unknown type id 4294967295"),
    Attack("type id of the fork", lambda: gguf(tensors=(tensor("t", (128,), 142, 0),), data=64), 2, "only the prism fork"),
    Attack("half a block a row", lambda: gguf(tensors=(tensor("t", (48, 2), 2, 0),), data=64), 2, "rows of 48, not whole Q4_0 blocks"),
    Attack("legacy Q2_0", lambda: gguf(tensors=(tensor("t", (256, 4), 42, 0),), data=8 * 34), 2, "legacy group-128"),
    Attack("legacy Q2_0 before another", lambda: gguf(tensors=(tensor("a", (256, 16), 42, 0), tensor("b", (8,), 0, 1088)), data=1200), 2, "legacy group-128"),
    Attack("offset past the end", lambda: gguf(tensors=(tensor("t", (8,), 0, 1 << 40),), data=32), 2, "where 0 is expected"),
    Attack("offset that wraps", lambda: gguf(tensors=(tensor("t", (8,), 0, HUGE - 31),), data=32), 2, "where 0 is expected"),
    Attack("offset not aligned", lambda: gguf(tensors=(tensor("t", (8,), 0, 4),), data=64), 2, "not a multiple of the alignment 32"),
    Attack("tensors over each other", lambda: gguf(tensors=(tensor("a", (64,), 0, 0), tensor("b", (8,), 0, 64)), data=512), 2, "before the next tensor"),
    Attack("tensors with a gap", lambda: gguf(tensors=(tensor("a", (8,), 0, 0), tensor("b", (8,), 0, 64)), data=512), 2, "where 32 is expected"),
    Attack("tensors in another order", lambda: gguf(tensors=(tensor("a", (8,), 0, 32), tensor("b", (8,), 0, 0)), data=512), 2, "where 0 is expected"),
    Attack("data cut short", lambda: gguf(tensors=(tensor("t", (64,), 0, 0),), data=255), 2, "needs 256 bytes and has 255"),
    Attack("no data at all", lambda: gguf(tensors=(tensor("t", (64,), 0, 0),)), 2, "needs 256 bytes and has 0"),
    Attack("Bonsai 2 by name", lambda: gguf((ARCH, string("general.name", "Ternary Bonsai_-2 8B"))), 2, "Bonsai 2 model"),
    Attack("fork required by basename", lambda: gguf((ARCH, string("general.basename", "x-Prism-Fork-Required"))), 2, "Bonsai 2 model"),
    Attack("no keys, no tensors", lambda: gguf(()), 0, "0 tensors"),
    Attack("a vocabulary alone", lambda: vocabulary(BYTES, "llama"), 0, "0 tensors"),
    Attack("token types in u8", lambda: vocabulary(BYTES, "gpt2", array("tokenizer.ggml.token_type", U8, 256, bytes(256))), 0, "play"),
    Attack("one token", lambda: vocabulary([b"a"], "gpt2"), 0, "play"),
    Attack("no token", lambda: vocabulary([], "gpt2"), 0, "play"),
    Attack("tokens not UTF-8", lambda: vocabulary([*BYTES, b"\xff\xfe"], "gpt2"), 0, "play"),
    Attack("end token out of range", lambda: vocabulary(BYTES, "gpt2", u32("tokenizer.ggml.eos_token_id", 10**9)), 0, "play"),
    Attack("tokens are numbers", lambda: gguf((ARCH, array("tokenizer.ggml.tokens", U32, 2, bytes(8)))), 0, "play"),
    Attack("template not UTF-8", lambda: vocabulary(BYTES, "gpt2", string("tokenizer.chat_template", b"\xff")), 0, "play"),
]  # fmt: skip


def write_all(folder: Path) -> list[tuple[Path, Attack]]:
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, attack in enumerate(ATTACKS):
        path = folder / f"{number:03}.gguf"
        path.write_bytes(attack.build())
        made.append((path, attack))
    return made


if __name__ == "__main__":
    for path, attack in write_all(Path(sys.argv[1])):
        print(path, attack.name)
