"""`bankml check`: checks the receipt in a response against the request and the text."""

import os
import time
from argparse import Namespace
from typing import TYPE_CHECKING

from bankml.cli.output import file_bar, say
from bankml.cli.stdin import MOST_BYTES, STDIN, bounded, read_bytes
from bankml.errors import Refused, UsageError
from bankml.files import problem

if TYPE_CHECKING:
    from bankml.signing.keys import PublicKey

MOST_OF_ANSWER = 16 * MOST_BYTES
"""Bytes of a response: one with a thousand probabilities per token is larger than any request."""


def check(arguments: Namespace) -> int:
    from bankml.receipt.check import check as compare
    from bankml.receipt.signature import signature_problems

    require_one_stdin(arguments.request, arguments.answer)
    key = None if arguments.key is None else _public_key(arguments.key)
    request, answer = read_request(arguments.request), read_answer(arguments.answer)
    checked = compare(request, answer)
    problems = list(checked.problems)
    if checked.receipt is not None and key is not None:
        problems += signature_problems(checked.receipt, key, time.time())
    if checked.receipt is not None and arguments.model is not None:
        problems += _model_problems(arguments.model, checked.receipt.get("model_sha256"))
    if checked.receipt is not None and _without_line_ends_fits(request, answer):
        problems.append("the request without its line ends fits: curl -d @FILE strips them, --data-binary keeps them")
    if problems:
        raise Refused("; ".join(problems))
    fields = ["response_sha256", "request_sha256"] + (["model_sha256"] if arguments.model is not None else [])
    signed = "" if key is None else f"; signed by the key {key.key_id}"
    say(f"the receipt fits: {', '.join(fields)} are true{signed}")
    return 0


def require_one_stdin(request: str, answer: str) -> None:
    """Raises UsageError where both files are stdin."""
    if request == answer == STDIN:
        raise UsageError("only one of the two can come from stdin")


def read_request(path: str) -> bytes:
    """Raises FileProblem, UsageError for one that is longer than a request may be."""
    return _read(path, MOST_BYTES)


def read_answer(path: str) -> bytes:
    """Raises FileProblem, UsageError for one that is longer than MOST_OF_ANSWER."""
    return _read(path, MOST_OF_ANSWER)


def _public_key(path: str) -> "PublicKey":
    from bankml.signing.keys import PublicKey

    return PublicKey.read(path)


def _read(path: str, most: int) -> bytes:
    if path == STDIN:
        return read_bytes(most)
    try:
        with open(path, "rb") as file:
            return bounded(file, path, most)
    except OSError as error:
        raise problem("read", path, error) from error


def _model_problems(path: str, said: object) -> list[str]:
    from bankml.gate.digest import sha256_file

    with file_bar("hashing", path) as progress:
        found = sha256_file(path, progress)
    if said == found:
        return []
    return [f"model_sha256 is {said}, but the sha256 of {os.path.basename(path)} is {found}"]


def _without_line_ends_fits(request: bytes, answer: bytes) -> bool:
    """Whether the request's hash is right once line ends are removed, as `curl -d @FILE` does."""
    from bankml.receipt.check import check as compare

    def names_request(body: bytes) -> bool:
        return any(one.startswith("request_sha256") for one in compare(body, answer).problems)

    return names_request(request) and not names_request(request.translate(None, b"\r\n"))
