"""The metadata of a GGUF file as a plain dict: just enough of a reader to feed the tokenizer in oracle tests."""

import struct
from pathlib import Path
from typing import Any, BinaryIO

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Header:
    def __init__(self, metadata: dict[str, Any]) -> None:
        self.metadata = metadata


def read_header(path: Path | str) -> Header:
    with open(path, "rb") as file:
        magic, _version, _n_tensors, n_keys = struct.unpack("<4sIQQ", file.read(24))
        assert magic == b"GGUF"
        metadata = {}
        for _ in range(n_keys):
            key = _string(file).decode()
            metadata[key] = _value(file, _number(file, "I"))
        return Header(metadata)


def _number(file: BinaryIO, code: str) -> Any:
    return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]


def _string(file: BinaryIO) -> bytes:
    return file.read(_number(file, "Q"))


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == 8:
        return _string(file)
    if kind == 9:
        item, count = _number(file, "I"), _number(file, "Q")
        return [_value(file, item) for _ in range(count)]
    return _number(file, SCALARS[kind])
