"""Reading files and the JSON in them: size-limited, strict UTF-8, strict numbers."""

import json
import os
from typing import Any, NoReturn

from bankml.files import open_regular, problem, unreadable


def read_bytes(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """The content of the regular file at `path`; without `follow` symbolic links are refused. Raises FileProblem, also
    for more than `most` bytes, whatever length the file system reports."""
    raw = bytearray()
    with open_regular(path, follow=follow) as file:
        try:
            while len(raw) <= most and (more := file.read(min(1 << 20, most + 1 - len(raw)))):
                raw += more
        except OSError as error:
            raise problem("read", path, error) from error
    if len(raw) > most:
        raise unreadable(path, f"longer than {most} bytes")
    return bytes(raw)


def parse_object(raw: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object in `raw`, which was read from `path`. Raises FileProblem."""
    try:
        text = raw.decode("utf-8")
        document = json.loads(text, parse_constant=_constant)
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode("utf-8")  # an unpaired escaped surrogate is not text
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"not JSON ({error})") from error
    if not isinstance(document, dict):
        raise unreadable(path, "not a JSON object")
    return document


def read_object(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> dict[str, Any]:
    """The JSON object in the file at `path`, of at most `most` bytes. Raises FileProblem."""
    return parse_object(read_bytes(path, most, follow=follow), path)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
