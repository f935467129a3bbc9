"""What people type: curl, and `bankml check` on what it sent and got."""

import json
import shutil
import subprocess
import sys

import pytest

QUESTION = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}
JSON = ("-H", "Content-Type: application/json")


@pytest.fixture
def curl(answering, tmp_path):
    """`curl(path, *words)` is the status and the body."""
    program = shutil.which("curl")
    if program is None:
        pytest.skip("no curl is installed")

    def ask(path, *words):
        command = [program, "-s", "-m", "30", "-w", "\n%{http_code}", answering.url(path), *words]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
        body, _, status = said.rpartition(b"\n")
        return int(status), body

    return ask


def test_what_can_be_looked_at(curl):
    for path in ("/health", "/props", "/v1/models", "/bankml"):
        status, body = curl(path)
        assert status == 200 and isinstance(json.loads(body), dict)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_and_its_receipt(curl, answering, tmp_path, stream):
    (tmp_path / "request.json").write_text(json.dumps(QUESTION | {"stream": stream}, indent=1) + "\n")
    status, body = curl("/v1/chat/completions", *JSON, "--data-binary", "@request.json")
    assert status == 200 and body.endswith(b"data: [DONE]\n\n") is stream
    (tmp_path / "answer.json").write_bytes(body)
    words = [sys.executable, "-m", "bankml", "check", "request.json", "answer.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "request.json").write_text(json.dumps(QUESTION))
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "request_sha256" in done.stderr


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("-d", json.dumps(QUESTION)), 415),
        (("-d", json.dumps(QUESTION), *JSON), 200),
        (("-d", json.dumps(QUESTION), *JSON, "-H", "Host: localhost.evil.com"), 403),
        (("-d", json.dumps(QUESTION), *JSON, "-H", "Transfer-Encoding: chunked"), 400),
        (("-d", json.dumps(QUESTION), *JSON, "-H", "Expect: 100-continue"), 200),
        (("-d", json.dumps(QUESTION), *JSON, "-0"), 200),
        (("-X", "PUT", "-d", "{}", *JSON), 405),
        (("-G",), 405),
    ],
    ids=lambda value: " ".join(value[-2:])[-40:] if isinstance(value, tuple) else str(value),
)
def test_as_people_type_it(curl, words, status):
    got, body = curl("/v1/chat/completions", *words)
    assert got == status, body
    assert ("error" in json.loads(body)) is (status != 200)
