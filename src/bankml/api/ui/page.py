"""`GET /bankml/ui`: one file that needs no other, and the headers that hold it to that."""

import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from bankml.api.exchange import Headers

FILE = Path(__file__).with_name("index.html")
_INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True)
class Page:
    body: bytes
    headers: Headers


@cache
def load() -> Page:
    """The page, read once. Its policy lets it run its own script, whose hash is named, and ask this server, no more."""
    body = FILE.read_bytes()
    hashes = {kind: _source(text) for kind, text in _INLINE.findall(body)}
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {hashes[b'script']}",
            f"style-src {hashes[b'style']}",
            "img-src data:",  # its icon
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    headers = (
        ("Content-Security-Policy", policy),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    )
    return Page(body, headers)


def _source(text: bytes) -> str:
    """What a policy calls an inline script or style: the hash of its text."""
    return f"'sha256-{b64encode(sha256(text).digest()).decode()}'"
