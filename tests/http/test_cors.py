"""Pages of other origins: without --allow-origin none, with it exactly the listed ones."""

import pytest

from bankml.http.api_keys import ApiKeys
from bankml.http.cors import AllowedOrigins

LISTED = "http://localhost:3000"
ASKS = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type, x-stainless-os")


@pytest.fixture
def open_to_one(serving):
    with serving(origins=AllowedOrigins([LISTED]), api_keys=ApiKeys(["key"])) as served:
        yield served


def ask(served, method, *lines, address="gateway"):
    head = [f"{method} /v1/models HTTP/1.1", "Host: localhost", "Connection: close", *lines]
    got = served.talk("\r\n".join(head).encode() + b"\r\n\r\n", address)
    top, _, _ = got.partition(b"\r\n\r\n")
    status, *fields = top.decode().split("\r\n")
    return int(status.split()[1]), {name.lower(): value for name, _, value in (one.partition(": ") for one in fields)}


@pytest.mark.parametrize("address", ["gateway", "engine"])
def test_a_listed_origins_preflight_is_answered_without_a_key(open_to_one, address):
    status, fields = ask(open_to_one, "OPTIONS", f"Origin: {LISTED}", *ASKS, address=address)
    assert status == 200 and fields["access-control-allow-origin"] == LISTED and fields["vary"] == "Origin"
    assert fields["access-control-allow-headers"] == "content-type, x-stainless-os"
    assert "POST" in fields["access-control-allow-methods"] and "access-control-allow-private-network" not in fields
    asked = (f"Origin: {LISTED}", *ASKS, "Access-Control-Request-Private-Network: true")
    assert ask(open_to_one, "OPTIONS", *asked)[1]["access-control-allow-private-network"] == "true"
    assert open_to_one.trial.requests == []


def test_its_requests_need_a_key_and_may_be_read_errors_too(open_to_one):
    status, fields = ask(open_to_one, "GET", f"Origin: {LISTED}")
    assert status == 401 and fields["access-control-allow-origin"] == LISTED
    status, fields = ask(open_to_one, "GET", f"Origin: {LISTED}", "Authorization: Bearer key")
    assert status == 200 and fields["access-control-allow-origin"] == LISTED
    assert "access-control-allow-credentials" not in fields


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3001", "https://localhost:3000", "http://localhost:3000.evil.example", "null", "*", "",
     "http://127.0.0.1:3000", "HTTP://LOCALHOST:3000"],
)  # fmt: skip
def test_no_other_origin_is_allowed(open_to_one, origin):
    status, fields = ask(open_to_one, "OPTIONS", f"Origin: {origin}", *ASKS)
    assert status == 405 and not any(name.startswith("access-control") for name in fields)
    status, fields = ask(open_to_one, "GET", f"Origin: {origin}", "X-Api-Key: key")
    assert status == 200 and fields["vary"] == "Origin"
    assert not any(name.startswith("access-control") for name in fields)


def test_two_origins_are_none(open_to_one):
    assert ask(open_to_one, "OPTIONS", f"Origin: {LISTED}", f"Origin: {LISTED}", *ASKS)[0] == 405


def test_another_host_is_refused_whatever_the_origin(open_to_one):
    lines = ["OPTIONS / HTTP/1.1", "Host: evil.example", f"Origin: {LISTED}", ASKS[0], "Connection: close"]
    got = open_to_one.talk("\r\n".join(lines).encode() + b"\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 403 ")


def test_without_the_option_there_is_no_cors(serving):
    with serving() as served:
        status, fields = ask(served, "OPTIONS", f"Origin: {LISTED}", *ASKS)
        assert status == 405
        status, fields = ask(served, "GET", f"Origin: {LISTED}")
        assert status == 200 and "vary" not in fields and "access-control-allow-origin" not in fields
