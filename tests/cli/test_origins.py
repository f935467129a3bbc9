"""`--allow-origin`: an origin as browsers send it, of this machine unless --allow-remote-origin is given."""

from argparse import Namespace

import pytest

from bankml.cli.origins import allowed_origins
from bankml.errors import UsageError
from bankml.http.head import MessageHead


def allowed(*given, remote=False):
    return allowed_origins(Namespace(allow_origin=list(given) or None, allow_remote_origin=remote))


def names(origins, origin):
    head = MessageHead((b"GET / HTTP/1.1", b"Origin: " + origin.encode()))
    return ("Access-Control-Allow-Origin", origin) in origins.headers(head)


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("http://localhost:3000", "http://localhost:3000"), ("http://localhost:3000/", "http://localhost:3000"),
        ("HTTP://LocalHost:80", "http://localhost"), ("https://[::1]:443/", "https://[::1]"),
        ("http://127.0.0.1", "http://127.0.0.1"),
    ],
)  # fmt: skip
def test_origins_of_this_machine(given, origin):
    assert names(allowed("http://localhost:1", given), origin)


@pytest.mark.parametrize(
    "given",
    ["*", "null", "localhost:3000", "http://", "ftp://localhost", "http://localhost/x", "http://localhost?", "http://a@b",
     "http://localhost:99999", "http://localhost:x", "http://é", "http://[::1", "http://localhost#"],
)  # fmt: skip
@pytest.mark.parametrize("remote", [False, True])
def test_what_is_no_origin(given, remote):
    with pytest.raises(UsageError, match="is not an origin"):
        allowed(given, remote=remote)


def test_remote_origins_are_allowed_by_an_option_of_their_own():
    with pytest.raises(UsageError, match="--allow-remote-origin"):
        allowed("https://app.example")
    assert names(allowed("https://app.example", remote=True), "https://app.example")
    with pytest.raises(UsageError, match="has no effect without"):
        allowed(remote=True)
    assert allowed() is None
