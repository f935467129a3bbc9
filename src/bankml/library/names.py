"""Models' names: which are valid in a request, which for a derived model, and the names of a file.

A name in a request is looked up in a table, and only the name of a derived model ever becomes part of a path:
`derived_name` accepts none that could lead out of the folder.
"""

import os
import re
from collections.abc import Iterable

from bankml.errors import RequestError

MAX_LENGTH = 255
LATEST = ":latest"

WEIGHT_TYPE_SUFFIX = re.compile(r"[-_.](?:(?:i|t|p|pt)?q\d+(?:_\w+)?|b?f16|f32|mxfp4)$")
"""The end of a lower-case file stem that only describes how the weights are stored: `-q1_0`, `.q4_k_m`, `-f16`."""

_PART = r"[a-z0-9_][a-z0-9_.-]{0,79}"
DERIVED_NAME = re.compile(f"{_PART}(?::{_PART})?")
"""Ollama's `model` or `model:tag`: letters, digits, `_`, `-` and `.`, each part at most 80 of them."""


def checked_name(name: str) -> str:
    """A requested name in lower case. Raises RequestError, saying why, for an invalid one.

    Refused: an empty name, one of more than 255 characters, `/` and `\\` (Ollama's `namespace/model` and
    `registry/namespace/model`: there are no remote registries), `..`, NUL, and any unprintable character.
    """
    if not name:
        raise RequestError("a model's name is empty")
    if len(name) > MAX_LENGTH:
        raise RequestError(f"the model name {quoted(name)} has {len(name)} characters, the limit is {MAX_LENGTH}")
    odd = next((c for c in name if not c.isprintable()), None)
    if odd is not None:
        raise RequestError(f"the model name {quoted(name)} contains the character {odd!a}")
    if "/" in name or "\\" in name:
        raise RequestError(
            f"the model name {quoted(name)} contains a slash: models are named by their files or by `create`, "
            "there are no remote registries"
        )
    if ".." in name:
        raise RequestError(f"the model name {quoted(name)} contains '..'")
    return name.lower()


def derived_name(name: str) -> str:
    """The name of a derived model, without `:latest`. Raises RequestError for an invalid one."""
    given = checked_name(name)
    bare = given.removesuffix(LATEST)
    if not DERIVED_NAME.fullmatch(bare):
        raise RequestError(
            f"the model name {quoted(name)} is invalid for a derived model: expected MODEL or MODEL:TAG, each of at "
            "most 80 letters, digits, '_', '-' and '.', beginning with a letter, a digit or '_'"
        )
    return bare


def names(file: str) -> tuple[str, ...]:
    """Every name of the model in `file`, its own first: the stem, the file name, the stem without its weight type.

    All are lower case, and each but the file's may carry Ollama's `:latest`.
    """
    stem, short = _stem(file), short_name(file)
    bare = (stem,) if short == stem else (stem, short)
    return (*bare, *(f"{name}{LATEST}" for name in bare), file.lower())


def short_name(file: str) -> str:
    """The lower-cased stem without its weight type: `qw-tiny` of `Qw-tiny-Q1_0.gguf`."""
    stem = _stem(file)
    return WEIGHT_TYPE_SUFFIX.sub("", stem) or stem


def aliases(files: Iterable[str]) -> dict[str, str]:
    """Every name of `files` (file names, the earlier one wins), and the file it belongs to.

    A name without its weight type belongs to a file only if no other file has it, complete or shortened.
    """
    found: dict[str, str] = {}
    shortened: dict[str, list[str]] = {}
    for file in files:
        stem = _stem(file)
        if stem not in found:
            for name in (stem, stem + LATEST, file.lower()):
                found.setdefault(name, file)
            shortened.setdefault(short_name(file), []).append(file)
    for short, owners in shortened.items():
        if len(owners) == 1 and short not in found:
            found[short] = found[short + LATEST] = owners[0]
    return found


def quoted(name: str) -> str:
    """A name for an error message: quoted, escaped, at most 80 characters of it."""
    return repr(name if len(name) <= 80 else name[:80] + "…")


def _stem(file: str) -> str:
    return os.path.splitext(file)[0].lower()
