"""`serve --spawn` and `--upstream` as processes: how the engine is started, watched and ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from hashlib import sha256
from pathlib import Path

import pytest

from bankml.cli import main
from bankml.cli import proxy as front
from bankml.receipt.check import check
from tests.attacks.build import ARCH, gguf, tensor
from tests.upstream.standin import StandIn

GOOD = gguf((ARCH,), (tensor("a", (32, 2), 8, 0), tensor("b", (8,), 0, 96)), 128)
BODY = b'{"messages":[{"role":"user","content":"Say hello."}]}'
ROOT = Path(__file__).parents[2]
FAKE = textwrap.dedent(f"""\
    #!{sys.executable}
    import json, os, signal, sys, time
    sys.path.insert(0, {str(ROOT)!r})
    from tests.upstream.standin import StandIn
    words = sys.argv[1:]
    engine = {{name: value for name, value in os.environ.items() if name.startswith("LLAMA_")}}
    with open("started.part", "w") as file:
        json.dump({{"words": words, "pid": os.getpid(), "environment": engine}}, file)
    os.rename("started.part", "started.json")
    mode = os.environ.get("FAKE_MODE", "")
    print("loading the model", flush=True)
    if mode == "dies":
        print("error: no such tensor", file=sys.stderr, flush=True)
        sys.exit(7)
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode != "loads":
        path = "/another.gguf" if mode == "other" else words[words.index("-m") + 1]
        StandIn(path).start(int(words[words.index("--port") + 1]))
    time.sleep(60)
""")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def gone(pid: int, within: float = 3.0) -> bool:
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


class Gateway:
    """`bankml serve` of a pinned model in `folder`, as a process."""

    def __init__(self, folder: Path, *words: str, mode: str = "") -> None:
        self.folder = folder
        self.ports = free_port(), free_port()
        addresses = ["--listen", f"127.0.0.1:{self.ports[0]}", "--upstream", f"127.0.0.1:{self.ports[1]}"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bankml", "serve", "m.gguf", "--spawn", "./llama-server", *addresses, *words],
            cwd=folder,
            env={**os.environ, "FAKE_MODE": mode, "LLAMA_ARG_LORA": "x", "LLAMA_API_KEY": "secret"},
            # these tests may themselves run under nohup, which ignores it
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 (no threads here)
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []

    def until(self, words: str) -> None:
        for line in self.process.stderr:
            self.said.append(line)
            if words in line:
                return
        raise AssertionError(self.said)

    def started(self) -> dict:
        path = self.folder / "started.json"
        until = time.monotonic() + 5
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.01)
        return json.loads(path.read_text())

    def chat(self) -> tuple[int, bytes]:
        url = f"http://127.0.0.1:{self.ports[0]}/v1/chat/completions"
        request = urllib.request.Request(url, BODY, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(6)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m.gguf").write_bytes(GOOD)
    record = {"files": [{"path": "m.gguf", "bytes": len(GOOD), "sha256": sha256(GOOD).hexdigest()}]}
    (tmp_path / "m.gguf.FORK.json").write_text(json.dumps(record))
    (tmp_path / "llama-server").write_text(FAKE)
    (tmp_path / "llama-server").chmod(0o755)
    return tmp_path


@pytest.fixture
def spawn(folder):
    running = []

    def start(*words, mode=""):
        running.append(Gateway(folder, *words, mode=mode))
        return running[-1]

    yield start
    for one in running:
        one.process.kill()
        one.process.wait()
        one.process.stderr.close()


def test_the_engine_is_started_with_these_words(spawn, folder):
    (folder / "slots").mkdir()
    words = ("--ctx", "512", "--spec-ngram", "--slot-dir", "slots", "--engine-log", "engine.log")
    gateway = spawn(*words)
    gateway.until("listening: ")
    started = gateway.started()
    path = str(folder / "m.gguf")
    assert started["words"] == [
        "-m", path, "--host", "127.0.0.1", "--port", str(gateway.ports[1]), "-t", "3", "-c", "512", "-np", "1",
        "--jinja", "--reasoning", "auto", "--no-webui", "--load-mode", "none", "--spec-type", "ngram-simple",
        "--slot-save-path", str(folder / "slots"),
    ]  # fmt: skip
    assert started["environment"] == {}, "what the environment would add to the command line is left out"
    status, got = gateway.chat()
    assert status == 200 and check(BODY, got).ok
    assert check(BODY, got).receipt["model_sha256"] == sha256(GOOD).hexdigest()
    assert gateway.end(signal.SIGTERM) == 0 and gone(started["pid"])
    assert (folder / "engine.log").read_text() == "loading the model\n"
    assert (folder / "engine.log").stat().st_mode & 0o777 == 0o600


def test_both_processes_are_watched(spawn):
    gateway = spawn()
    gateway.until("listening: ")
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.ports[0]}/bankml/usage", timeout=5) as answer:
        processes = json.load(answer)["processes"]
    pids = {"gateway": gateway.process.pid, "engine": gateway.started()["pid"]}
    assert {each["name"]: each["pid"] for each in processes} == pids
    assert all(each["rss_bytes"] > 1 << 20 for each in processes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_stop_the_engine_too(spawn, number):
    gateway = spawn()
    gateway.until("listening: ")
    assert gateway.end(number) == 0 and gone(gateway.started()["pid"])


@pytest.mark.parametrize("mode", ["", "loads", "stubborn"])
def test_no_orphan_after_sigkill(spawn, mode):
    gateway = spawn(mode=mode)
    gateway.until("waiting: " if mode == "loads" else "listening: ")
    pid = gateway.started()["pid"]
    assert gateway.end(signal.SIGKILL) == -signal.SIGKILL and gone(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_while_the_engine_loads(spawn, number):
    gateway = spawn(mode="loads")
    gateway.until("waiting: ")
    pid = gateway.started()["pid"]
    assert gateway.end(number) != 0 and gone(pid)


WRAPPERS = {
    "script": '#!/bin/sh\n./llama-server "$@"\nexit $?\n',
    "script of a script": '#!/bin/sh\nsh -c \'./llama-server "$@"; exit $?\' sh "$@"\nexit $?\n',
    "ignores SIGTERM": '#!/bin/sh\ntrap "" TERM\n./llama-server "$@"\nexit $?\n',
}


@pytest.mark.parametrize("mode", ["", "stubborn"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_engine_behind_a_wrapper_ends_too(spawn, folder, wrapper, number, mode):
    (folder / "wrapper").write_text(WRAPPERS[wrapper])
    (folder / "wrapper").chmod(0o755)
    gateway = spawn("--spawn", "./wrapper", mode=mode)
    gateway.until("listening: ")
    pid = gateway.started()["pid"]
    begun = time.monotonic()
    assert gateway.end(number) == (-number if number == signal.SIGKILL else 0)
    assert gone(pid) and time.monotonic() - begun < 8
    guards = subprocess.run(["pgrep", "-f", "bankml-guard .*"], capture_output=True, text=True, check=False).stdout
    assert all(gone(int(guard)) for guard in guards.split() if _parent(int(guard)) in (1, gateway.process.pid))


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def test_an_engine_that_takes_no_sigterm_is_killed_in_time(spawn):
    gateway = spawn(mode="stubborn")
    gateway.until("listening: ")
    begun = time.monotonic()
    assert gateway.end(signal.SIGTERM) == 0 and gone(gateway.started()["pid"])
    assert time.monotonic() - begun < 5


def test_an_engine_that_exits_at_once_is_noticed_at_once(spawn):
    begun = time.monotonic()
    gateway = spawn(mode="dies")
    _, said = gateway.process.communicate(timeout=10)
    assert gateway.process.returncode == 1 and time.monotonic() - begun < 8
    assert "error: llama-server ended with exit code 7; its last output: " in said
    assert "error: no such tensor" in said and "Traceback" not in said
    assert said.count("llama-server ended") == 1


def test_an_engine_that_dies_later(spawn):
    gateway = spawn()
    gateway.until("ask: ")
    os.kill(gateway.started()["pid"], signal.SIGKILL)
    gateway.until("llama-server ended by SIGKILL; its last output: loading the model")
    status, got = gateway.chat()
    assert status == 502 and b"llama-server ended by SIGKILL" in got and b"bankml_receipt" not in got
    assert gateway.end(signal.SIGTERM) == 0


def test_an_engine_that_serves_something_else(spawn):
    gateway = spawn(mode="other")
    _, said = gateway.process.communicate(timeout=10)
    assert gateway.process.returncode == 2 and "does not serve the verified file m.gguf" in said
    assert gone(gateway.started()["pid"])


def test_an_address_that_answers_already(spawn, folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gateway = spawn("--upstream", f"127.0.0.1:{taken.getsockname()[1]}")
        _, said = gateway.process.communicate(timeout=10)
    assert gateway.process.returncode == 1 and "the address is in use" in said
    assert not (folder / "started.json").exists()


@pytest.mark.parametrize("program", ["nowhere/llama-server", "m.gguf"])
def test_a_program_that_cannot_be_started(folder, monkeypatch, capfd, program):
    monkeypatch.chdir(folder)
    upstream = f"127.0.0.1:{free_port()}"
    assert main(["serve", "m.gguf", "--spawn", program, "--upstream", upstream]) == 1
    assert capfd.readouterr().err.startswith(f"error: --spawn {program}: no such executable program")


def test_upstream_without_an_engine(folder, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(front, "UPSTREAM_WITHIN", 0.2)
    port = free_port()
    assert main(["serve", "m.gguf", "--upstream", f"127.0.0.1:{port}"]) == 1
    said = capfd.readouterr().err
    assert f"llama-server at 127.0.0.1:{port} was not ready within 0.2 s" in said and "Connection refused" in said


def test_upstream_with_an_engine(folder, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    served = []
    monkeypatch.setattr("bankml.http.server.serve", lambda application, **options: served.append(options) or 0)
    engine = StandIn(str(folder / "m.gguf"))
    words = ["serve", "m.gguf", "--upstream", f"127.0.0.1:{engine.start()[1]}"]
    try:
        assert main(words) == 0 and served[0]["listen"] == ("127.0.0.1", 18093)
        engine.model_path = "/another.gguf"
        assert main(words) == 2 and "does not serve the verified file m.gguf" in capfd.readouterr().err
        assert len(served) == 1
    finally:
        engine.stop()
