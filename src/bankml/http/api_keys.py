"""API keys: on a machine with several users, loopback alone does not say who sends a request.

A key is sent as `Authorization: Bearer KEY` or `X-Api-Key: KEY`, as to llama-server. `/health` needs none.
"""

import hashlib
import hmac
from collections.abc import Iterable

from bankml.errors import Unauthorized
from bankml.http.head import MessageHead
from bankml.http.rules import split_target

PUBLIC = frozenset(("/health", "/v1/health"))
_BEARER = b"bearer "


class ApiKeys:
    """The accepted keys, as hashes: a comparison takes the same time whatever was sent."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key.encode("utf-8")) for key in keys]

    def check(self, head: MessageHead) -> None:
        """Raises Unauthorized for a request without an accepted key, except to PUBLIC paths."""
        if not self._digests or split_target(head)[0] in PUBLIC:
            return
        sent = [value[len(_BEARER) :] for value in head.values(b"authorization") if value.lower().startswith(_BEARER)]
        sent += head.values(b"x-api-key")
        if len(sent) != 1 or not self._accepts(sent[0].strip()):
            raise Unauthorized("Invalid API Key")

    def _accepts(self, key: bytes) -> bool:
        digest = _digest(key)
        return any([hmac.compare_digest(digest, known) for known in self._digests])  # a list: all are compared


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
