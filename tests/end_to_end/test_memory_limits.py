"""`serve --native` under limits of address space (ulimit -v): a request or the start is refused, nothing aborts."""

import json
import resource
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from tests.end_to_end.servers import free_port
from tests.tiny_model import tiny_model

MIB = 1 << 20
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
SHORT = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}
REQUESTS = (
    SHORT,
    SHORT | {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
    SHORT | {"messages": [{"role": "user", "content": "x" * 20_000}]},
    SHORT,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("limited"))


def post(port, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def listening(port, process):
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return True
    return False


@pytest.mark.parametrize("limit", [116, 122, 130, 136, 141, 146, 152, 200])
def test_a_shortage_of_memory_is_an_answer(model, limit):
    ports = free_port(), free_port()
    addresses = [f"--listen=127.0.0.1:{ports[0]}", f"--upstream=127.0.0.1:{ports[1]}"]
    words = ["serve", model.path, "--fork", model.fork_path, "--native", "--threads=2", *addresses]
    with subprocess.Popen(
        [sys.executable, "-m", "bankml", *words],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit * MIB, limit * MIB)),  # noqa: PLW1509
    ) as process:
        if listening(ports[0], process):
            for body in REQUESTS:
                status, got = post(ports[0], body)
                assert status in (200, 400, 503), got
                assert status != 503 or b"not enough memory" in got
            assert process.poll() is None, "the server goes on"
            process.terminate()
        _, said = process.communicate(timeout=20)
        assert process.returncode in (0, 1), said
        assert "Traceback" not in said and "internal error" not in said
