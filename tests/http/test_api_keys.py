"""API keys over sockets: what needs one, in which headers it is found, and that nothing else is learnt without it."""

import json

import pytest

from bankml.http.api_keys import ApiKeys


@pytest.fixture
def guarded(serving):
    with serving(api_keys=ApiKeys(["first-key", "second-key"])) as served:
        yield served


def ask(served, *lines, path="/v1/models", address="gateway", method="GET", body=b""):
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *lines]
    if method == "POST":
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    got = served.talk("\r\n".join(head).encode() + b"\r\n\r\n" + body, address)
    top, _, rest = got.partition(b"\r\n\r\n")
    return int(top.split()[1]), top.lower(), rest


@pytest.mark.parametrize("address", ["gateway", "engine"])
@pytest.mark.parametrize(
    "line",
    ["Authorization: Bearer first-key", "authorization: bearer second-key", "X-Api-Key: first-key"],
)
def test_a_key_opens_everything(guarded, line, address):
    assert ask(guarded, line, address=address)[0] == 200
    assert ask(guarded, line, address=address, method="POST", body=b"{}")[0] == 200
    assert len(guarded.trial.requests) == 2


@pytest.mark.parametrize("address", ["gateway", "engine"])
@pytest.mark.parametrize("path", ["/v1/models", "/bankml", "/health/", "/healthy", "/", "/slots/0", "/api/tags"])
@pytest.mark.parametrize(
    "lines",
    [
        (), ("Authorization: Bearer ",), ("Authorization: Bearer first-ke",), ("Authorization: Bearer first-keyx",),
        ("Authorization: Basic first-key",), ("Authorization: first-key",), ("X-Api-Key: FIRST-KEY",),
        ("Authorization: Bearer first-key", "X-Api-Key: wrong"), ("Authorization: Bearer \u00e9",),
    ],
)  # fmt: skip
def test_no_key_or_another_is_a_401(guarded, lines, path, address):
    for method, body in (("GET", b""), ("POST", b"{}")):
        status, head, got = ask(guarded, *lines, path=path, address=address, method=method, body=body)
        error = json.loads(got)["error"]
        assert status == 401 and b"\r\nwww-authenticate: bearer\r\n" in head + b"\r\n"
        message = error if isinstance(error, str) else error["message"]
        assert message == "Invalid API Key" and (isinstance(error, str) or error["type"] == "authentication_error")
    assert guarded.trial.requests == [], "the application never sees it"


def test_health_needs_none(guarded):
    for path in ("/health", "/v1/health", "/health?x=1"):
        assert ask(guarded, path=path)[0] == 200


def test_the_rules_come_first(guarded):
    got = guarded.talk(b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 403 ")


def test_without_keys_the_header_is_ignored(serving):
    with serving() as served:
        assert ask(served, "Authorization: Bearer anything")[0] == 200
