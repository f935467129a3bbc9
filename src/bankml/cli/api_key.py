"""`--api-key` and `--api-key-file` of `serve`."""

from argparse import Namespace
from typing import TYPE_CHECKING

from bankml.errors import UsageError

if TYPE_CHECKING:
    from bankml.http.api_keys import ApiKeys

MOST_BYTES = 1 << 20


def api_keys(arguments: Namespace) -> "ApiKeys | None":
    """The keys of the command line and of the file, one a line; None where neither option is given.

    Raises UsageError for a key that no header can have or a file without keys, FileProblem for one that cannot be read.
    """
    from bankml.http.api_keys import ApiKeys

    given: str | None = getattr(arguments, "api_key", None)
    path: str | None = getattr(arguments, "api_key_file", None)
    if given is None and path is None:
        return None
    keys = [] if given is None else [given]
    if path is not None:
        keys += _keys_in(path)
    for key in keys:
        if not key or not all("!" <= character <= "~" for character in key):
            raise UsageError("an API key must be one or more visible ASCII characters without a space")
    return ApiKeys(keys)


def _keys_in(path: str) -> list[str]:
    from bankml.library.json_file import read_bytes

    lines = read_bytes(path, MOST_BYTES).decode("utf-8", "replace").splitlines()
    keys = [line.strip() for line in lines if line.strip()]
    if not keys:
        raise UsageError(f"--api-key-file {path} has no key: one a line is expected")
    return keys
