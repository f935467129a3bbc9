"""`--allow-origin` and `--allow-remote-origin` of `serve`."""

from argparse import Namespace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bankml.errors import UsageError

if TYPE_CHECKING:
    from bankml.http.cors import AllowedOrigins

PORTS = {"http": 80, "https": 443}
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


def allowed_origins(arguments: Namespace) -> "AllowedOrigins | None":
    """The origins of the command line; None where there are none. Raises UsageError for what is no origin, and for one
    that is not of this machine without --allow-remote-origin."""
    from bankml.http.cors import AllowedOrigins

    given: list[str] = getattr(arguments, "allow_origin", None) or []
    remote = getattr(arguments, "allow_remote_origin", False)
    if remote and not given:
        raise UsageError("--allow-remote-origin has no effect without --allow-origin URL")
    return AllowedOrigins(_origin(text, remote) for text in given) if given else None


def _origin(text: str, remote: bool) -> str:
    """An origin as browsers send it: scheme, host in lower case, and the port unless it is the scheme's own."""
    try:
        url = urlsplit(text.removesuffix("/"))
        host, port = url.hostname or "", url.port
    except ValueError:
        host, port, url = "", None, urlsplit("")
    plain = not (url.path or url.query or url.fragment or url.username is not None or "?" in text or "#" in text)
    if url.scheme not in PORTS or not host or not plain or not text.isascii():
        raise UsageError(f"--allow-origin {text} is not an origin such as http://localhost:3000")
    if host not in LOOPBACK_HOSTS and not remote:
        raise UsageError(f"--allow-origin {text} is not of this machine: add --allow-remote-origin if that is meant")
    shown = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{shown}" + (f":{port}" if port not in (None, PORTS[url.scheme]) else "")
