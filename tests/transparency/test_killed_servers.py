"""Servers as processes: killed while they answer, without room on the disk, two on one log, with a secret."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

import pytest

from bankml.signing.keys import PublicKey, generate
from bankml.transparency.receipts import entry_of
from bankml.transparency.writer import LogWriter
from tests.end_to_end.servers import exchange, free_port, waiting
from tests.tiny_model import tiny_model
from tests.transparency.logs import entries_of, reader

PASSPHRASE = "correct horse battery staple"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model"), n_layer=1).path


@contextmanager
def served(model, log, *words, limit=None):
    """(port, process, its lines on stderr) of a server whose receipts are in the log `log`."""
    port, other = free_port(), free_port()
    command = [sys.executable, "-m", "bankml", "serve", model, "--native", "--ctx=256", "--threads=1", f"--log={log}"]
    command += [f"--listen=127.0.0.1:{port}", f"--upstream=127.0.0.1:{other}", *words]
    said = Path(f"{log}.stderr")
    with open(said, "wb") as out, subprocess.Popen(command, stderr=out) as process:
        try:
            waiting(port, process)
            if limit is not None:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            yield port, process, said.read_text
        finally:
            process.terminate()
            process.wait(20)


def chat(port, number=0, stream=False):
    body = {"messages": [{"role": "user", "content": f"hé {number}"}], "max_tokens": 3, "stream": stream}
    return exchange(port, "POST", "/v1/chat/completions", json.dumps(body).encode())


def receipt_of(answer):
    """The receipt that a client holds complete."""
    if answer.startswith(b"{"):
        return json.loads(answer)["bankml_receipt"]
    events = [json.loads(line[6:]) for line in answer.decode().split("\n\n") if line.startswith("data: {")]
    return next(event["bankml_receipt"] for event in events if "bankml_receipt" in event)


@pytest.mark.parametrize("sync", ["always", "every-second"])
def test_after_kill_9_every_receipt_that_a_client_holds_is_in_the_log(tmp_path, model, sync):
    log, held = tmp_path / "log", []
    for round_ in range(3):
        with served(model, log, f"--log-sync={sync}", "--parallel=4") as (port, process, _):
            before, killed = len(held), threading.Event()

            def ask(port=port, killed=killed, stream=False):
                number = 0
                while not killed.is_set():
                    number += 1
                    try:
                        held.append(receipt_of(chat(port, number, stream)[2]))
                    except (OSError, HTTPException, ValueError, StopIteration):
                        return  # the answer broke off: this client holds no receipt

            clients = [threading.Thread(target=ask, kwargs={"stream": number % 2 == 1}) for number in range(6)]
            for client in clients:
                client.start()
            while len(held) < before + 20 + 7 * round_:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            killed.set()
            for client in clients:
                client.join(30)
    LogWriter(str(log)).close()
    entries = entries_of(log)
    assert len(held) > 60 and reader(log).verify().size == len(entries) >= len(held)
    for receipt in held:
        assert entries[receipt["log"]["index"]] == entry_of(receipt)


def test_without_room_answers_are_503_and_go_on_when_there_is_room(tmp_path, model):
    log = tmp_path / "log"
    with served(model, log, limit=6000) as (port, process, _):
        statuses = [chat(port, number)[0] for number in range(20)]
        given = statuses.index(503)
        assert 2 <= given < 15 and set(statuses[given:]) == {503} and set(statuses[:given]) == {200}
        status, _, answer = chat(port, 1, stream=True)
        assert status == 503 and "cannot be written, so no answer is given: file too large" in answer.decode()
        assert exchange(port, "GET", "/health")[0] == 200
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert [chat(port, number)[0] for number in range(3)] == [200] * 3
    entries = [json.loads(entry) for entry in entries_of(log)]
    assert sum("outcome" not in receipt for receipt in entries) == given + 3


def test_if_the_log_is_optional_answers_go_on(tmp_path, model):
    with served(model, tmp_path / "log", "--log-optional", limit=3000) as (port, _, said):
        receipts = [receipt_of(chat(port, number)[2]) for number in range(10)]
        assert "log" in receipts[0] and "log" not in receipts[-1]
        assert said().count("receipts are not recorded (--log-optional)") == 1


def test_two_servers_on_one_log(tmp_path, model):
    log = tmp_path / "log"
    with served(model, log) as (_, process, _):
        words = [sys.executable, "-m", "bankml", "serve", model, "--native", f"--log={log}"]
        words += [f"--listen=127.0.0.1:{free_port()}", f"--upstream=127.0.0.1:{free_port()}"]
        second = subprocess.run(words, capture_output=True, text=True, check=False)
        says = f"error: the log {log} is in use by another server (process {process.pid})\n"
        assert (second.returncode, second.stderr) == (1, says)


def test_a_signing_server_shows_no_secret(tmp_path, model):
    """In its list of words, its environment, its log, its answers and errors."""
    secret, key, log = tmp_path / "secret", str(tmp_path / "sign.key"), tmp_path / "log"
    secret.write_text(PASSPHRASE + "\n")
    secret.chmod(0o600)
    generate(key, PASSPHRASE.encode())
    with open(key) as file:
        pem = file.read().splitlines()[1]
    with served(model, log, f"--sign-key={key}", f"--sign-passphrase-file={secret}") as (port, process, said):
        answers = [
            chat(port)[2],
            exchange(port, "GET", "/bankml")[2],
            exchange(port, "GET", "/bankml/log/checkpoint")[2],
        ]
        answers.append(exchange(port, "POST", "/v1/chat/completions", b"{")[2])
        shown = b"".join(answers) + said().encode()
        for name in ("cmdline", "environ"):
            with open(f"/proc/{process.pid}/{name}", "rb") as file:
                shown += file.read()
        assert os.stat(f"/proc/{process.pid}/mem").st_uid == 0  # not the user's: the process cannot be dumped
        assert PASSPHRASE.encode() not in shown and pem.encode() not in shown and b"PRIVATE" not in shown
        assert b"signed" in shown and "log: its key, for readers: bankml.localhost/" in said()
    assert reader(log, PublicKey.read(f"{key}.pub.pem")).verify().size == 1
