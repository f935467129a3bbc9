"""The log: one line a request, whatever was asked."""

import io
import os
import re

from bankml.http.exchange import RequestOutcome
from bankml.http.log import AccessLogEntry, RequestLog, format_entry


def test_lines_of_answers_and_refusals(serving):
    with serving() as served:
        served.talk(b"GET /x?secret=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", end=True)
        served.talk(b"GET /stream?3 HTTP/1.1\r\nHost: localhost\r\n\r\n", "engine", end=True)
        served.talk(b"GET /y?secret=1 HTTP/1.1\r\nHost: evil.com\r\n\r\n")
        served.talk(b"\x16\x03\x01\x02\r\n\r\n")
        lines = served.lines(4)
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
    expected = [
        r"gateway GET /x 200 25B \d+\.\dms prompt=3 cached=1 completion=2 stop",
        r"engine GET /stream 200 27B \d+\.\dms ttft=\d+\.\dms",
        r"gateway GET /y 403 \d+B \d+\.\dms refused: permission_error",
        r"gateway \\x16\\x03\\x01\\x02 - 400 \d+B \d+\.\dms refused: invalid_request_error",
    ]
    assert len(lines) == 4
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(stamp + pattern, line), line
    assert "secret" not in "".join(lines) and "evil" not in "".join(lines)


def test_nobody_writes_a_second_line():
    entry = AccessLogEntry(
        "gateway", "GET\n", "/a b\r\n\x1b[2J" + "ä" * 500, 1, 0.0123, RequestOutcome(200, note="a\nb c"), 0.001
    )
    line = format_entry(entry, 0.0)
    assert line.startswith("1970-01-01T00:00:00.000Z gateway GET\\n /a\\x20b\\r\\n\\x1b[2J\\xe4")
    assert line.endswith("… 200 1B 12.3ms ttft=1.0ms a\\nb c")
    assert line.isprintable() and len(line) < 1000


def test_a_log_that_is_gone_stops_nothing():
    closed = io.StringIO()
    closed.close()
    RequestLog(closed).write(AccessLogEntry("gateway", "GET", "/", 0, 0.0, RequestOutcome(200)))


def test_nobody_waits_for_whoever_reads_the_log():
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as reader, open(writing, "w") as stream:
        log = RequestLog(stream)
        for number in range(3000):
            log.say(f"{number:04} " + "x" * 95)
        first = reader.read(1 << 20)
        log.say("the next")
        rest = reader.read(1 << 20).decode()
    count = first.count(b"\n")
    assert 100 < count < 3000 and first.endswith(b"x\n"), "whole lines, as many as the pipe holds"
    assert rest == f"{3000 - count} log lines were dropped here, because the log was not read\nthe next\n"
