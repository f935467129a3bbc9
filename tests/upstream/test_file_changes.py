"""The file that llama-server serves changes, is hashed again, or is not the only file it has loaded."""

import json
import os
import threading
from hashlib import sha256

import pytest

from bankml.cli import main
from bankml.errors import ModelChanged
from bankml.gate.verify import verify
from bankml.upstream.rehash import FileRehash
from tests.attacks.build import ARCH, U16, gguf, key, tensor
from tests.gate.test_read_once import storing
from tests.upstream.front import BODY, STREAMED, House, question
from tests.upstream.standin import DONE, STREAM, STREAM_HEAD, WHOLE, answer, chunk

GOOD = gguf((ARCH,), (tensor("a", (32, 2), 8, 0), tensor("b", (8,), 0, 96)), 128)


@pytest.fixture
def pinned(tmp_path):
    path, fork = tmp_path / "m.gguf", tmp_path / "m.gguf.FORK.json"
    path.write_bytes(GOOD)
    fork.write_text(json.dumps({"files": [{"path": "m.gguf", "sha256": sha256(GOOD).hexdigest()}]}))
    return path, fork


def test_a_change_during_a_whole_answer_gives_no_receipt(tmp_path):
    path = tmp_path / "m.gguf"

    def chat(asked, write):
        os.utime(path)
        write(answer(WHOLE))

    with House(path, chat=chat) as it:
        status, got = it.chat(BODY)
    assert status == 503 and b"changed since it was verified" in got
    assert b"bankml_receipt" not in got and b"choices" not in got


@pytest.mark.parametrize("parts", [1, len(STREAM)], ids=["at once", "relayed"])
def test_a_change_during_a_stream_gives_no_receipt(tmp_path, parts):
    path, seen = tmp_path / "m.gguf", threading.Event()

    def chat(asked, write):
        write(STREAM_HEAD)
        if parts == 1:
            os.utime(path)
            write(chunk(b"".join(STREAM)) + chunk(b""))
            return
        write(chunk(STREAM[0]))
        assert seen.wait(5)
        for part in STREAM[1:]:
            write(chunk(part))
        write(chunk(b""))

    with House(path, chat=chat) as it, it.connect() as client:
        client.sendall(question("POST", "/v1/chat/completions", STREAMED))
        got = b""
        while b"data: " not in got:
            got += client.recv(65536)
        os.utime(path)
        seen.set()
        client.settimeout(5)
        while not got.endswith(b"0\r\n\r\n"):
            got += client.recv(65536)
    assert b"bankml_receipt" not in got and DONE not in got
    assert got.count(b'data: {"error"') == 1 and b"changed since it was verified" in got


def test_a_hidden_store_is_found_by_the_next_hash(pinned):
    path, fork = pinned
    with storing(path, len(GOOD) - 1) as store:
        verified, said = verify(path, fork), []
        rehash = FileRehash(verified, said.append)
        rehash.run()
        store()
        assert verified.unchanged, "no time shows it"
        for attempt in (rehash.run, rehash.check, rehash.run):
            with pytest.raises(ModelChanged, match=r"its sha256 is [0-9a-f]{64} now"):
                attempt()
        store()  # the file is what it was; what llama-server read is not known
        with pytest.raises(ModelChanged):
            rehash.run()
    assert len(said) == 1


def test_the_schedule_hashes_at_once_and_again(pinned):
    path, fork = pinned
    found = threading.Event()
    with storing(path, len(GOOD) - 1) as store:
        rehash = FileRehash(verify(path, fork), lambda message: found.set())
        began = rehash.verified_at
        rehash.start(0.01)
        until = threading.Event()
        while rehash.verified_at == began:
            until.wait(0.01)
        store()
        assert found.wait(10)
    with pytest.raises(ModelChanged):
        rehash.check()


def test_verify_on_demand(pinned):
    path, fork = pinned
    with storing(path, len(GOOD) - 1) as store, House(path, contents=GOOD, verified=lambda: verify(path, fork)) as it:
        status, _, got = it.ask("POST", "/bankml/verify", b"{}")
        said = json.loads(got)
        about = json.loads(it.ask(path="/bankml")[2])
        assert (status, said["model_sha256"]) == (200, sha256(GOOD).hexdigest())
        assert about["rehashed_at"] == said["rehashed_at"] >= about["verified_at"]
        assert about["loading"] == "unknown" and about["proof"].startswith("proven: the file")
        assert it.chat()[0] == 200
        store()
        assert it.chat()[0] == 200, "nothing shows it yet"
        assert it.ask("POST", "/bankml/verify", b"{}")[0] == 503
        for body in (BODY, STREAMED):
            status, got = it.chat(body)
            assert status == 503 and b"its sha256 is" in got
        assert it.ask("GET", "/bankml/verify")[0] == 405


@pytest.mark.parametrize(
    ("standin", "says"),
    [
        ({"adapters": b'[{"id":0,"path":"/a.gguf","scale":1.0}]'}, b"LoRA adapters, which are not pinned"),
        ({"further_props": {"modalities": {"vision": True, "audio": False}}}, b"multimodal projector (vision), which"),
    ],
)
def test_what_is_loaded_beside_the_file_is_refused(tmp_path, standin, says):
    with House(tmp_path / "m.gguf", **standin) as it:
        for body in (BODY, STREAMED):
            status, got = it.chat(body)
            assert status == 503 and says in got and b"receipt" not in got
        assert not it.standin.chats()


def test_adapters_are_asked_about_once_a_connection(tmp_path):
    with House(tmp_path / "m.gguf") as it:
        for _ in range(3):
            assert it.chat()[0] == 200
    asked = [one for one in it.standin.asked if b" /lora-adapters " in one.line]
    assert len(asked) == it.standin.connections == 1


SPLIT = gguf(
    (ARCH, key("split.count", U16, (3).to_bytes(2, "little"))),
    (tensor("a", (32, 2), 8, 0), tensor("b", (8,), 0, 96)),
    128,
)


def test_one_part_of_a_split_model_is_refused_in_every_mode(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, out = tmp_path / "sp-00001-of-00003.gguf", tmp_path / "out.gguf"
    path.write_bytes(SPLIT)
    assert main(["pin", str(path), "--fork", f"{path}.FORK.json", "--record"]) == 0
    capfd.readouterr()
    for command in (
        ["serve", str(path), "--native"],
        ["serve", str(path), "--spawn", "llama-server"],
        ["serve", str(path), "--upstream", "127.0.0.1:9"],
        ["verify", str(path), "--fork", f"{path}.FORK.json"],
        ["convert", str(path), "-o", str(out), "--outtype", "f16"],
    ):
        assert main(command) == 2, command
        said = capfd.readouterr().err
        assert "one of 3 parts of a split model: merge them with `llama-gguf-split --merge" in said, (command, said)
        assert said.count("\n") == 1 and not out.exists()
