"""The rules for a request's head, as two tables of small functions, applied before the request is dispatched.

    rule                 refused                                                             status
    host                 Host (or an absolute target's host) is not loopback                 403
                         no Host, two of them, or one that differs from the target's         400
    transfer_encoding    Transfer-Encoding on a request                                      400, "send Content-Length"
    characters           a control character but TAB, a folded or colonless header line      400
    content_length       Content-Length twice (equal or not), or no plain decimal number     400
    -- here h11 parses the head; what is not HTTP/1.1 is 400 --
    version              neither HTTP/1.0 nor HTTP/1.1                                       400
    method               none of GET, HEAD, POST, DELETE (a preflight, unless --allow-origin)   405
    target               neither a path nor http://HOST/path; a fragment                     400
    expectation          Expect is not 100-continue                                          400
    size                 Content-Length over 16 MiB                                          413
    coding               Content-Encoding on a request                                       415
    media_type           POST with another Content-Type than application/json                415
                         POST without one, or with application/octet-stream, of a browser    415

The order is the order of evaluation, so that a page whose host name was rebound to 127.0.0.1 gets the 403 and
nothing else. A page of any origin may send a POST without a preflight only as a form, as text or without a type; a
browser sends Origin with every POST, and Sec-Fetch-Site to a loopback address. So an untyped body is accepted where
both are absent, for clients that send JSON without saying so.
"""

import json
import re
from collections.abc import Callable

from bankml.errors import (
    BankmlError,
    BodyTooLarge,
    HostForbidden,
    MethodNotAllowed,
    RequestError,
    WrongMediaType,
)
from bankml.http.error_bodies import shape_of
from bankml.http.head import MessageHead
from bankml.http.limits import Limits

METHODS = (b"GET", b"HEAD", b"POST", b"DELETE")
_AUTHORITY = re.compile(rb"(?i:127\.0\.0\.1|localhost|\[::1\])(?::([0-9]{1,5}))?")
_ABSOLUTE = re.compile(rb"(?i:http)://([^/?#]*)")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_SHOWN = 80


def is_loopback(authority: bytes) -> bool:
    """Whether `authority` is 127.0.0.1, localhost or [::1], with any port from 0 to 65535 or none."""
    match = _AUTHORITY.fullmatch(authority)
    return match is not None and int(match[1] or 0) <= 65535


def shown(value: bytes) -> str:
    """`value` for a message: at most 80 characters, control and non-ASCII characters escaped."""
    text = value[:_SHOWN].decode("latin-1").encode("unicode_escape").decode("ascii")
    return f"'{text}'" + ("…" if len(value) > _SHOWN else "")


def host(head: MessageHead, limits: Limits) -> None:
    values = head.values(b"host")
    foreign_host(head)
    if len(values) != 1:
        came = "the request has none" if not values else f"the request has {len(values)}"
        raise RequestError(f"send one Host header naming 127.0.0.1, localhost or [::1]: {came}")
    absolute = _ABSOLUTE.match(head.request_line[1])
    if absolute and absolute[1].lower() != values[0].lower():
        raise RequestError(f"the target names {shown(absolute[1])} and Host {shown(values[0])}: they must be equal")


def foreign_host(head: MessageHead) -> None:
    """Raises HostForbidden if the lines of `head`, even an unfinished one, name a host that is not loopback."""
    for value in head.values(b"host"):
        if not is_loopback(value):
            raise HostForbidden(f"Host must be 127.0.0.1, localhost or [::1], with any port, not {shown(value)}")
    absolute = _ABSOLUTE.match(head.request_line[1])
    if absolute and not is_loopback(absolute[1]):
        raise HostForbidden(f"the target's host must be 127.0.0.1, localhost or [::1], not {shown(absolute[1])}")


def transfer_encoding(head: MessageHead, limits: Limits) -> None:
    if head.values(b"transfer-encoding"):
        raise RequestError("Transfer-Encoding is not supported on a request: send Content-Length")


def characters(head: MessageHead, limits: Limits) -> None:
    for number, line in enumerate(head.lines):
        name = f"header line {number}" if number else "the request line"
        if bad := _CONTROL.search(line):
            raise RequestError(f"{name} contains the control character 0x{bad[0][0]:02X}")
        if number and line[:1] in (b" ", b"\t"):
            raise RequestError(f"{name} begins with white space: folded header lines are not supported")
        if number and b":" not in line:
            raise RequestError(f"{name} has no colon")


def content_length(head: MessageHead, limits: Limits) -> None:
    values = head.values(b"content-length")
    if len(values) > 1:
        raise RequestError(f"send one Content-Length header, not {len(values)}")
    if values and not (values[0].isdigit() and len(values[0]) <= 19):
        raise RequestError(f"Content-Length must be a decimal number of at most 19 digits, not {shown(values[0])}")


def version(head: MessageHead, limits: Limits) -> None:
    if head.request_line[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise RequestError(f"the HTTP version must be HTTP/1.1 or HTTP/1.0, not {shown(head.request_line[2])}")


def method(head: MessageHead, limits: Limits) -> None:
    if head.request_line[0] not in METHODS:
        raise MethodNotAllowed(f"the method must be one of {allowed_methods()}, not {shown(head.request_line[0])}")


def target(head: MessageHead, limits: Limits) -> None:
    path, query = split_target(head)
    if not path.startswith("/"):
        raise RequestError(f"the target must begin with / or http://, not {shown(head.request_line[1])}")
    if "#" in path + query:
        raise RequestError("the target must not contain a fragment (#)")


def expectation(head: MessageHead, limits: Limits) -> None:
    for value in head.values(b"expect"):
        if head.request_line[2] != b"HTTP/1.0" and value.lower() != b"100-continue":
            raise RequestError(f"Expect must be 100-continue, not {shown(value)}")


def size(head: MessageHead, limits: Limits) -> None:
    if (length := announced(head)) > limits.body:
        raise BodyTooLarge(f"the body is limited to {limits.body} bytes: Content-Length is {length}")


def coding(head: MessageHead, limits: Limits) -> None:
    for value in head.values(b"content-encoding"):
        if value.lower() != b"identity":
            raise WrongMediaType(f"Content-Encoding is not supported: send the body unencoded, not as {shown(value)}")


def media_type(head: MessageHead, limits: Limits) -> None:
    if head.request_line[0] != b"POST":
        return
    values = head.values(b"content-type")
    kind = values[0].partition(b";")[0].strip().lower() if len(values) == 1 else b""
    untyped = not values or kind == b"application/octet-stream"
    if kind != b"application/json" and not (untyped and not _from_browser(head)):
        came = ", ".join(shown(value) for value in values) or "none"
        raise WrongMediaType(f"a POST must have Content-Type: application/json, not {came}")


def _from_browser(head: MessageHead) -> bool:
    return any(name == b"origin" or name.startswith(b"sec-fetch-") for name, _ in head.fields)


Rule = Callable[[MessageHead, Limits], None]
BEFORE_PARSING: tuple[Rule, ...] = (host, transfer_encoding, characters, content_length)
AFTER_PARSING: tuple[Rule, ...] = (version, method, target, expectation, size, coding, media_type)
OF_PREFLIGHTS: tuple[Rule, ...] = (version, target, expectation, size, coding)
"""The same for the OPTIONS of a page whose origin is allowed (cors)."""


def check(rules: tuple[Rule, ...], head: MessageHead, limits: Limits) -> None:
    """Raises the RequestError of the first rule that `head` breaks."""
    for rule in rules:
        rule(head, limits)


def announced(head: MessageHead) -> int:
    """The length of the body that follows a head whose Content-Length has been checked, in bytes."""
    values = head.values(b"content-length")
    return int(values[0]) if values else 0


def split_target(head: MessageHead) -> tuple[str, str]:
    """(path, query) of the target, not decoded; of an absolute target the part after its host."""
    raw = head.request_line[1]
    if absolute := _ABSOLUTE.match(raw):
        raw = raw[absolute.end() :]
        raw = raw if raw.startswith(b"/") else b"/" + raw
    path, _, query = raw.decode("latin-1").partition("?")
    return path, query


def allowed_methods() -> str:
    return ", ".join(name.decode() for name in METHODS)


def error_body(error: BankmlError, path: str, address: str) -> bytes:
    """The JSON body of an error: Ollama's form below /api on the gateway address, OpenAI's everywhere else."""
    return json.dumps(shape_of(path, address)(error), ensure_ascii=False).encode()
