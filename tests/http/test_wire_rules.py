"""Each loopback rule over a real socket, on both addresses: these bytes, that answer, and the connection ended."""

import json

import pytest

HOST = b"Host: 127.0.0.1:18093\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST


def get(*lines: bytes, target: bytes = b"/health", version: bytes = b"HTTP/1.1") -> bytes:
    return b"GET " + target + b" " + version + b"\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def post(*lines: bytes, body: bytes = b"{}") -> bytes:
    return POST + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


JSON_TYPE = b"Content-Type: application/json"
REFUSED = {
    # Host
    "no host": (get(), 400, "the request has none"),
    "two hosts": (get(b"Host: localhost", b"Host: localhost"), 400, "the request has 2"),
    "two hosts, one foreign": (get(b"Host: localhost", b"Host: evil.com"), 403, "evil.com"),
    "another name": (get(b"Host: evil.com"), 403, "evil.com"),
    "subdomain": (get(b"Host: localhost.evil.com"), 403, "localhost.evil.com"),
    "address as subdomain": (get(b"Host: 127.0.0.1.evil.com"), 403, "127.0.0.1.evil.com"),
    "name before localhost": (get(b"Host: evil.localhost"), 403, ""),
    "another loopback address": (get(b"Host: 127.0.0.2"), 403, ""),
    "any address": (get(b"Host: 0.0.0.0"), 403, ""),
    "decimal address": (get(b"Host: 2130706433"), 403, ""),
    "address of a network": (get(b"Host: 192.168.0.1:18093"), 403, ""),
    "port out of range": (get(b"Host: localhost:99999"), 403, "localhost:99999"),
    "port of no digits": (get(b"Host: localhost:http"), 403, ""),
    "empty port": (get(b"Host: localhost:"), 403, ""),
    "trailing dot": (get(b"Host: localhost."), 403, ""),
    "bare ipv6": (get(b"Host: ::1"), 403, ""),
    "long ipv6": (get(b"Host: [0:0:0:0:0:0:0:1]"), 403, ""),
    "mapped ipv6": (get(b"Host: [::ffff:127.0.0.1]"), 403, ""),
    "list": (get(b"Host: localhost, evil.com"), 403, ""),
    "user": (get(b"Host: user@localhost"), 403, ""),
    "empty": (get(b"Host:"), 403, ""),
    "space before the colon": (get(b"Host : localhost"), 400, "the request has none"),
    "host before anything else": (
        b"BREW /\x00 HTTP/7.7\r\nHost: evil.com\r\nTransfer-Encoding: gzip\r\n folded\r\n\r\n", 403, "evil.com",
    ),
    "host on http/1.0": (get(version=b"HTTP/1.0"), 400, "the request has none"),
    # absolute targets
    "foreign absolute target": (get(b"Host: localhost", target=b"http://evil.com/health"), 403, "evil.com"),
    "user in an absolute target": (get(b"Host: localhost", target=b"http://localhost@evil.com/"), 403, ""),
    "target and host differ": (get(b"Host: localhost", target=b"http://127.0.0.1/"), 400, "must be equal"),
    "https target": (get(b"Host: localhost", target=b"https://localhost/"), 400, "target"),
    "authority target": (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n", 405, "method"),
    "relative target": (get(b"Host: localhost", target=b"health"), 400, "target"),
    "asterisk": (get(b"Host: localhost", target=b"*"), 400, "target"),
    "fragment": (get(b"Host: localhost", target=b"/a#b"), 400, "fragment"),
    # framing
    "chunked": (
        post(JSON_TYPE, b"Transfer-Encoding: chunked", body=b"2\r\n{}\r\n0\r\n\r\n"), 400, "send Content-Length",
    ),
    "chunked beside a length": (
        post(JSON_TYPE, b"Content-Length: 2", b"transfer-ENCODING: chunked"), 400, "send Content-Length",
    ),
    "unknown coding": (post(JSON_TYPE, b"Transfer-Encoding: identity"), 400, "send Content-Length"),
    "two equal lengths": (post(JSON_TYPE, b"Content-Length: 2", b"Content-Length: 2"), 400, "one Content-Length"),
    "two lengths": (post(JSON_TYPE, b"Content-Length: 2", b"Content-Length: 3"), 400, "one Content-Length"),
    "a list of lengths": (post(JSON_TYPE, b"Content-Length: 2, 2"), 400, "decimal"),
    "negative length": (post(JSON_TYPE, b"Content-Length: -2"), 400, "decimal"),
    "signed length": (post(JSON_TYPE, b"Content-Length: +2"), 400, "decimal"),
    "hexadecimal length": (post(JSON_TYPE, b"Content-Length: 0x2"), 400, "decimal"),
    "empty length": (post(JSON_TYPE, b"Content-Length:"), 400, "decimal"),
    "length of 20 digits": (post(JSON_TYPE, b"Content-Length: 00000000000000000002"), 400, "decimal"),
    "superscript length": (post(JSON_TYPE, "Content-Length: ²".encode("latin-1")), 400, "decimal"),
    "body over 16 MiB": (post(JSON_TYPE, b"Content-Length: 16777217"), 413, "16777216"),
    "body of an exabyte": (post(JSON_TYPE, b"Content-Length: 1000000000000000000"), 413, "16777216"),
    # media types
    "form type": (post(b"Content-Type: application/x-www-form-urlencoded", b"Content-Length: 2"), 415, "x-www-form"),
    "text type": (post(b"Content-Type: text/plain", b"Content-Length: 2"), 415, "text/plain"),
    "nearly json": (post(b"Content-Type: application/jsonp", b"Content-Length: 2"), 415, "jsonp"),
    "octets of a page": (post(b"Content-Type: application/octet-stream", b"Origin: http://evil.example"), 415, "octet"),
    "no type, of a page": (post(b"Origin: null", b"Content-Length: 2"), 415, "none"),
    "no type, of a page of another site": (post(b"Sec-Fetch-Site: cross-site", b"Content-Length: 2"), 415, "none"),
    "no type, of any page": (post(b"Sec-Fetch-Mode: no-cors", b"Content-Length: 2"), 415, "none"),
    "two types": (post(JSON_TYPE, b"Content-Type: text/plain", b"Content-Length: 2"), 415, ""),
    "two equal types": (post(JSON_TYPE, JSON_TYPE, b"Content-Length: 2"), 415, ""),
    "compressed body": (post(JSON_TYPE, b"Content-Encoding: gzip", b"Content-Length: 2"), 415, "Content-Encoding"),
    # malformed heads
    "null in a header": (get(b"Host: localhost", b"X: a\x00b"), 400, "0x00"),
    "control character in a header": (get(b"Host: localhost", b"X: a\x01b"), 400, "0x01"),
    "delete in a header": (get(b"Host: localhost", b"X: a\x7fb"), 400, "0x7F"),
    "bare CR in a header": (get(b"Host: localhost", b"X: a\rb"), 400, "0x0D"),
    "null in the target": (get(b"Host: localhost", target=b"/\x00"), 400, "0x00"),
    "folded line": (get(b"Host: localhost", b"X: a", b"\tb"), 400, "folded"),
    "folded first line": (get(b" X: a", b"Host: localhost"), 400, "folded"),
    "no colon": (get(b"Host: localhost", b"nonsense"), 400, "colon"),
    "space in a name": (get(b"Host: localhost", b"X Y: a"), 400, "HTTP"),
    "lone LF": (b"GET /health HTTP/1.1\nHost: localhost\n\n", 400, "LF"),
    "lone LF later": (b"GET /health HTTP/1.1\r\nHost: localhost\n\r\n", 400, "LF"),
    "two empty lines first": (b"\r\n\r\n" + get(b"Host: localhost"), 400, "empty line"),
    "http/0.9": (b"GET /health\r\nHost: localhost\r\n\r\n", 400, "HTTP"),
    "http/2": (b"PRI * HTTP/2.0\r\nHost: localhost\r\n\r\nSM\r\n\r\n", 400, "HTTP/2.0"),
    "http/1.2": (get(b"Host: localhost", version=b"HTTP/1.2"), 400, "HTTP/1.2"),
    "two spaces": (b"GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "HTTP"),
    "space in the target": (get(b"Host: localhost", target=b"/a b"), 400, "HTTP"),
    "not ASCII in the target": (get(b"Host: localhost", target="/ä".encode()), 400, "HTTP"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, ""),
    "unknown expectation": (get(b"Host: localhost", b"Expect: wonders"), 400, "wonders"),
    # methods
    "preflight": (
        b"OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.com\r\n"
        b"Access-Control-Request-Method: POST\r\n\r\n", 405, "OPTIONS",
    ),
    "put": (b"PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 405, "PUT"),
    "trace": (b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "TRACE"),
    "lower-case method": (b"get / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "get"),
}  # fmt: skip


@pytest.mark.parametrize("address", ["gateway", "engine"])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals(served, name, address):
    sent, status, words = REFUSED[name]
    before = len(served.trial.requests)
    head, _, body = served.talk(sent, address).partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0].split()[1] == str(status)
    assert "connection: close" in lines
    assert f"content-length: {len(body)}" in lines
    assert not any(line.startswith("access-control") for line in lines)
    error = json.loads(body)["error"]
    assert set(error) == {"code", "message", "type"}
    assert error["code"] == status and words in error["message"]
    assert len(served.trial.requests) == before, "a refused request reached the application"
    if status == 405:
        assert "allow: get, head, post, delete" in lines


ACCEPTED = {
    "ipv4": get(b"Host: 127.0.0.1"),
    "ipv4 and port": get(b"Host: 127.0.0.1:1"),
    "localhost": get(b"Host: localhost:65535"),
    "upper case": get(b"HOST: LOCALHOST:18093"),
    "ipv6": get(b"Host: [::1]"),
    "ipv6 and port": get(b"Host: [::1]:18093"),
    "port zero": get(b"Host: localhost:0"),
    "white space around": get(b"Host: \t localhost \t"),
    "absolute target": get(b"Host: LocalHost:8", target=b"http://localhost:8/health"),
    "absolute target, scheme in capitals": get(b"Host: localhost", target=b"HTTP://localhost/health"),
    "http/1.0": get(b"Host: localhost", version=b"HTTP/1.0"),
    "an empty line first": b"\r\n" + get(b"Host: localhost"),
    "tab and obs-text in a value": get(b"Host: localhost", b"X: a\tb\xff"),
    "upgrade is not taken up": get(b"Host: localhost", b"Upgrade: websocket", b"Connection: Upgrade"),
    "origin is nothing": get(b"Host: localhost", b"Origin: http://evil.com"),
    "identity coding": post(JSON_TYPE, b"Content-Encoding: identity", b"Content-Length: 2"),
    "json": post(JSON_TYPE, b"Content-Length: 2"),
    "no type": post(b"Content-Length: 2"),
    "no type and no body": POST + b"\r\n",
    "octets": post(b"Content-Type: application/octet-stream", b"Content-Length: 2"),
    "json with charset": post(b"content-type: Application/JSON ; charset=utf-8", b"Content-Length: 2"),
    "post without length": post(JSON_TYPE, body=b""),
    "leading zeros": post(JSON_TYPE, b"Content-Length: 0002"),
    "delete needs no type": b"DELETE /api/delete HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    "get with a body": get(b"Host: localhost", b"Content-Length: 2") + b"{}",
}


@pytest.mark.parametrize("address", ["gateway", "engine"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(served, name, address):
    answer = served.talk(ACCEPTED[name], address, end=True)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer
    assert b"access-control" not in answer.lower()
    assert served.trial.requests[-1].address == address


def test_what_the_application_is_told(served):
    served.talk(
        b"POST http://localhost/a%20b/%2e%2e?x=%31&y HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\nx-a: 2\r\n"
        b"Content-Type: application/json\r\nContent-Length: 3\r\n\r\nabc",
        end=True,
    )
    request = served.trial.requests[-1]
    assert (request.method, request.path, request.query) == ("POST", "/a%20b/%2e%2e", "x=%31&y")
    assert request.body == b"abc"
    assert request.headers["x-a"] == "2" and request.headers["content-length"] == "3"


@pytest.mark.parametrize(
    ("target", "address", "ollama"),
    [
        (b"/api/chat", "gateway", True),
        (b"/api", "gateway", True),
        (b"/apiary", "gateway", False),
        (b"/api/chat", "engine", False),
    ],
)
def test_the_shape_of_an_error(served, target, address, ollama):
    answer = served.talk(get(b"Host: evil.com", target=target), address)
    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert isinstance(error, str) is ollama


def test_every_answer_carries_these_headers(served):
    for sent in (get(b"Host: localhost"), get(b"Host: evil.com")):
        head = served.talk(sent, end=True).partition(b"\r\n\r\n")[0].lower()
        assert b"\r\nserver: bankml/" in head and b"\r\ndate: " in head
        assert b"\r\nx-content-type-options: nosniff" in head
