"""Files read whole, and the JSON in them: bounded, UTF-8, no surprise in a number."""

import json
import os
from typing import Any, NoReturn

from bankml.errors import FileProblem
from bankml.files import problem
from bankml.gguf.header import open_regular


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """The whole regular file at `path`. Raises FileProblem; also for one of more than `most` bytes."""
    with open_regular(path) as file:
        try:
            raw = b"".join(iter(lambda: file.read(1 << 20), b"")) if os.fstat(file.fileno()).st_size <= most else None
        except OSError as error:
            raise problem("read", path, error) from error
    if raw is None or len(raw) > most:
        raise FileProblem(f"cannot read {os.fspath(path)}: longer than {most} bytes")
    return raw


def parse_object(raw: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object in `raw`, which was read from `path`. Raises FileProblem."""
    try:
        text = raw.decode("utf-8")
        document = json.loads(text, parse_constant=_constant)
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode("utf-8")  # an escaped surrogate alone is no text
    except (ValueError, RecursionError) as error:
        raise FileProblem(f"cannot read {os.fspath(path)}: not JSON ({error})") from error
    if not isinstance(document, dict):
        raise FileProblem(f"cannot read {os.fspath(path)}: not a JSON object")
    return document


def read_object(path: str | os.PathLike[str], most: int) -> dict[str, Any]:
    """The JSON object in the file at `path`, of at most `most` bytes. Raises FileProblem."""
    return parse_object(read_bytes(path, most), path)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
