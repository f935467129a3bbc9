"""A server killed in the middle of saving its slot, a hundred times: the file is the old one or the new one, whole."""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from bankml.engine.slot_folder import SECRET
from tests.tiny_model import tiny_model

KILLS = 100
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def ask(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@dataclass
class Server:
    pid: int
    gateway: int
    engine: int

    def slot(self, action, name):
        status, answer = ask(self.engine, f"/slots/0?action={action}", {"filename": name})
        assert status == 200, answer
        return answer

    def chat(self, text):
        status, answer = ask(
            self.gateway,
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": text}], "max_tokens": 8, "temperature": 0},
        )
        assert status == 200, answer
        return answer["choices"][0]["message"]["content"], answer["timings"]["cache_n"]

    def begin_saving(self, name):
        """Sends the request and does not wait for the answer."""
        body = json.dumps({"filename": name})
        client = socket.create_connection(("127.0.0.1", self.engine))
        head = f"POST /slots/0?action=save HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
        client.sendall((head + "Content-Type: application/json\r\n\r\n" + body).encode())
        return client

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        while True:
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.001)


@pytest.fixture
def start(tmp_path):
    """Starts a server with the slot folder `tmp_path / "slots"`, as often as it is called."""
    folder = tmp_path / "slots"
    folder.mkdir()
    verified = tiny_model(tmp_path, n_layer=3)
    command = [sys.executable, "-m", "tests.engine.nursery", verified.path, verified.fork_path, str(folder)]
    nursery = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    servers = []

    def one():
        nursery.stdin.write("\n")
        nursery.stdin.flush()
        servers.append(Server(*map(int, nursery.stdout.readline().split())))
        return servers[-1]

    yield one
    for server in servers:
        with contextlib.suppress(ProcessLookupError):
            server.kill()
    nursery.stdin.close()
    nursery.stdout.close()
    assert nursery.wait(10) == 0


def test_killed_in_the_middle_of_saves(start, tmp_path):
    folder, chance = tmp_path / "slots", random.Random(6)
    texts = {name: "".join(chance.choices(LETTERS, k=length)) for name, length in (("one", 2500), ("two", 2400))}
    server, answers = start(), {}
    for name, text in texts.items():
        server.chat(text)
        answers[name] = server.chat(text)  # with all but the last token of the prompt found in the slot
        server.slot("save", name)
    began = time.monotonic()
    server.slot("save", "kept")
    usual = time.monotonic() - began
    server.kill()
    whole = {(folder / name).read_bytes(): name for name in texts}
    kept, changed, unfinished = "two", 0, 0
    for i in range(KILLS):
        server = start()
        assert {path.name for path in folder.iterdir()} == {"one", "two", "kept", SECRET}, (
            "a killed server's rest is swept"
        )
        source = "one" if kept == "two" else "two"
        server.slot("restore", source)
        client = server.begin_saving("kept")
        time.sleep(usual * 2 * i / KILLS)
        server.kill()
        client.close()
        now = whole.get((folder / "kept").read_bytes())
        assert now in (kept, source), "the file is neither the old one nor the new one"
        changed += now != kept
        unfinished += len(list(folder.iterdir())) > 4
        kept = now
    assert 5 < changed < KILLS - 5 and unfinished > 5, (changed, unfinished)
    server = start()
    server.slot("restore", "kept")
    assert server.chat(texts[kept]) == answers[kept]
