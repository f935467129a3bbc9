"""`GET /bankml/ui`: one page that needs no other file, made of its parts, and the headers that hold it to that."""

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from bankml.http.exchange import Headers

_FOLDER = Path(__file__).parent
_SCRIPTS = ("elements", "server", "charts", "answers", "chat")
"""In the order in which they run, in one scope."""


@dataclass(frozen=True)
class Page:
    body: bytes
    headers: Headers


@cache
def load() -> Page:
    """The page, read once. Its policy lets it run its own script, whose hash is named, and ask this server, no more."""
    style = b"\n" + _part("style.css")
    script = b'\n"use strict";\n(() => {\n%s})();\n' % b"\n".join(_part(f"{name}.js") for name in _SCRIPTS)
    body = _part("index.html")
    body = body.replace(b"<style></style>", b"<style>%s</style>" % style)
    body = body.replace(b"<script></script>", b"<script>%s</script>" % script)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_source(script)}",
            f"style-src {_source(style)}",
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


def _part(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


def _source(text: bytes) -> str:
    """What a policy calls an inline script or style: the hash of all that stands between its tags."""
    return f"'sha256-{b64encode(sha256(text).digest()).decode()}'"
