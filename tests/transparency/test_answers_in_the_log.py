"""Every answer of every API is in the log before its client has it, and so is what was cut, cancelled or failed."""

import json
import time
from http.client import HTTPConnection

import pytest

from bankml.api.log_routes import LogRoutes
from bankml.errors import Refused
from bankml.receipt.check import check
from bankml.receipt.issuer import Issuer
from bankml.receipt.receipt import sha256_hex
from bankml.receipt.signature import signature_problems
from bankml.signing import ed25519
from bankml.signing.keys import SigningKey
from bankml.transparency import pending
from bankml.transparency.checking import prove, reader_of, verify_proof
from bankml.transparency.receipts import ReceiptLog, entry_of
from bankml.transparency.writer import LogWriter
from tests.api.api_toys import MemoryReply, ask, toy_ollama, user
from tests.api.measured_house import House
from tests.engine.engine_toys import hashing
from tests.transparency.logs import entries_of, reader
from tests.upstream.front import BODY, STREAMED
from tests.upstream.front import House as ProxyHouse
from tests.upstream.standin import answer as response


@pytest.fixture(scope="module")
def key():
    return SigningKey(ed25519.new_key())


class Logged:
    """An application whose receipts are in a log."""

    def __init__(self, path, key=None, answer="Oslo.", optional=False, **parts):
        self.path, self.key = str(path), key
        self.writer = LogWriter(self.path, key)
        self.issuer = Issuer(key, log=ReceiptLog(self.writer, optional))
        self.toy, self.library = toy_ollama(answer, **parts)
        self.library.issuer = self.issuer
        self.application = LogRoutes(self.toy, self.writer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.issuer.close()

    def receipts(self):
        self.writer.checkpoint()
        return [json.loads(entry) for entry in entries_of(self.path)]


PROMPT = {"prompt": "Where?", "max_tokens": 8}
REQUESTS = [
    ("/v1/chat/completions", user("Where?")),
    ("/v1/chat/completions", user("Where?", stream=True)),
    ("/v1/completions", PROMPT),
    ("/v1/completions", {**PROMPT, "prompt": ["Where?", "When?"], "stream": True}),
    ("/completion", {**PROMPT, "stream": True}),
    ("/v1/responses", {"input": "Where?", "stream": True}),
    ("/v1/messages", user("Where?", max_tokens=8)),
    ("/api/chat", user("Where?", model="toy-1m-f16")),
    ("/api/generate", {"prompt": "Where?", "model": "toy-1m-f16", "stream": False}),
]


@pytest.mark.parametrize(("path", "request_body"), REQUESTS)
def test_every_api(tmp_path, key, path, request_body):
    saying = hashing if "prompt" in request_body and path != "/api/generate" else "Oslo."
    body = json.dumps(request_body).encode()
    with Logged(tmp_path / "log", key, saying) as logged:
        for place in range(2):
            checked = check(body, ask(logged.application, path, body).body)
            assert checked.problems == () and checked.receipt["log"] == {"origin": logged.writer.origin, "index": place}
            assert list(signature_problems(checked.receipt, key.public, time.time())) == []
            assert logged.receipts()[-1] == checked.receipt
            verify_proof(checked.receipt, prove(reader(logged.path, key.public), checked.receipt).text, key.public)
        about = ask(logged.application, "/bankml").json["log"]
        assert about == {"origin": logged.writer.origin, "size": 2}


def test_the_receipt_is_on_the_disk_before_the_last_byte_is_sent(tmp_path, monkeypatch):
    happened = []
    real = pending.os.fdatasync
    monkeypatch.setattr(pending.os, "fdatasync", lambda descriptor: (real(descriptor), happened.append("synced"))[0])

    class Watched(MemoryReply):
        def write(self, data):
            happened.append("receipt" if b"bankml_receipt" in data else "part")
            return super().write(data)

        def whole(self, status, body, *more):
            happened.append("receipt")
            super().whole(status, body, *more)

    with Logged(tmp_path / "log") as logged:
        for streamed in (True, False):
            happened.clear()
            ask(logged.application, body=user("Where?", stream=streamed), reply=Watched())
            assert happened.index("synced") < happened.index("receipt") and happened.count("synced") == 1


def test_an_answer_whose_client_left_is_in_the_log(tmp_path):
    body = json.dumps(user("Where?", stream=True)).encode()
    with Logged(tmp_path / "log") as logged:
        reply = ask(logged.application, body=body, reply=MemoryReply(room=3))
        assert reply.log.note == "cancelled"
        (receipt,) = logged.receipts()
    assert receipt["outcome"] == "cancelled" and receipt["request_sha256"] == sha256_hex(body)
    assert receipt["completion_tokens"] >= 1 and "finish_reason" not in receipt
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in reply.events)
    assert "Oslo.".startswith(text)


def test_an_answer_that_failed_is_in_the_log(tmp_path):
    def failing(context):
        if len(context) > 20:
            raise MemoryError
        return hashing(context)

    with Logged(tmp_path / "log", answer=failing) as logged:
        reply = ask(logged.application, body=user("Where?", max_tokens=40, stream=True))
        assert b"bankml_receipt" not in reply.body
        (receipt,) = logged.receipts()
    assert receipt["outcome"] == "failed" and receipt["completion_tokens"] is None


def test_a_request_that_is_refused_is_no_answer(tmp_path):
    with Logged(tmp_path / "log") as logged:
        assert ask(logged.application, body={"messages": []}).status == 400
        assert ask(logged.application, body=user("Where?", model="other")).status == 404
        assert logged.receipts() == []


@pytest.mark.parametrize("streamed", [False, True])
def test_in_front_of_llama_server(tmp_path, key, streamed):
    writer = LogWriter(str(tmp_path / "log"), key)
    issuer = Issuer(key, log=ReceiptLog(writer))
    with ProxyHouse(tmp_path / "m.gguf", issuer=issuer) as house:
        body = STREAMED if streamed else BODY
        status, answer = house.chat(body)
    checked = check(body, answer)
    assert status == 200 and checked.problems == ()
    issuer.close()
    prove(reader(tmp_path / "log", key.public), checked.receipt)


def test_an_engines_answer_that_breaks_off_is_in_the_log(tmp_path):
    broken = response(b'{"choices": [')
    issuer = Issuer(log=ReceiptLog(LogWriter(str(tmp_path / "log"))))
    with ProxyHouse(tmp_path / "m.gguf", issuer=issuer, chat=broken) as house:
        assert house.chat()[0] == 502
    issuer.close()
    (entry,) = entries_of(tmp_path / "log")
    assert json.loads(entry)["outcome"] == "failed"


# ---- a full disk


@pytest.fixture
def full(monkeypatch):
    """Fills the disk."""

    def fill():
        def refuse(*words):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(pending.os, "pwrite", refuse)
        monkeypatch.setattr("bankml.files.os.fsync", refuse)

    return fill


SAYS = "the receipt log cannot be written, so no answer is given: no space left on device"


def test_on_a_full_disk_answers_stop(tmp_path, full):
    with Logged(tmp_path / "log") as logged:
        assert ask(logged.application, body=user("Where?")).status == 200
        full()
        for path, request_body in REQUESTS[:2] + REQUESTS[5:]:
            reply = ask(logged.application, path, request_body)
            assert b"bankml_receipt" not in reply.body and SAYS.encode() in reply.body
            assert reply.status == 503, "the stream has not begun"
            assert reply.headers["Retry-After"] == "1"
        assert str(tmp_path) not in reply.body.decode()


def test_a_stream_that_has_begun_ends_with_an_error(tmp_path, full):
    with Logged(tmp_path / "log") as logged:
        full()  # which nobody knows before the first receipt
        reply = ask(logged.application, body=user("Where?", stream=True))
        assert reply.status == 200 and SAYS in reply.events[-1]["error"]["message"]
        assert b"bankml_receipt" not in reply.body


def test_if_the_log_is_optional_answers_go_on_and_say_so(tmp_path, full, key, caplog):
    with Logged(tmp_path / "log", key, optional=True) as logged:
        assert ask(logged.application, body=user("Where?")).json["bankml_receipt"]["log"]["index"] == 0
        full()
        for _ in range(3):
            body = json.dumps(user("Where?")).encode()
            checked = check(body, ask(logged.application, body=body).body)
            assert checked.problems == () and "log" not in checked.receipt
            assert list(signature_problems(checked.receipt, key.public, time.time())) == []
            with pytest.raises(Refused, match="names no place in a log"):
                prove(reader(logged.path), checked.receipt)
    said = [record for record in caplog.records if "receipts are not recorded (--log-optional)" in record.getMessage()]
    assert len(said) == 1


# ---- over HTTP


def test_the_log_over_http(tmp_path, key):
    with Logged(tmp_path / "log", key) as logged, House(logged.application) as house, house.client() as client:
        body = user("Where?")
        _, _, answer = client.ask("POST", "/v1/chat/completions", body)
        receipt = json.loads(answer)["bankml_receipt"]
        found = reader_of(f"{house.url}/bankml/log", key.public)
        proof = prove(found, receipt)  # the checkpoint has the answer that was just given
        assert proof.text == prove(reader(logged.path, key.public), receipt).text
        old = found.checkpoint()[0]
        for _ in range(300):
            client.ask("POST", "/v1/chat/completions", body)
        assert found.verify().size == 301
        found.require_consistent(old, found.checkpoint()[0])
        status, headers, note = client.ask("GET", "/bankml/log/checkpoint")
        assert (
            status == 200
            and headers["content-type"].startswith("text/plain")
            and headers["cache-control"] == "no-cache"
        )
        assert note.decode().startswith(logged.writer.origin)
        status, headers, tile = client.ask("GET", "/bankml/log/tile/0/000")
        assert (status, len(tile), headers["content-type"]) == (200, 8192, "application/octet-stream")
        assert client.ask("GET", "/bankml/log/tile/0/000.p/7")[2] == tile[: 7 * 32]  # what it was once
        assert client.ask("HEAD", "/bankml/log/checkpoint")[2] == b""
        for path in (
            "",
            "pending",
            "lock",
            "tile/0/001",
            "tile/0/001.p/200",
            "tile/../pending",
            "tile/0/../../lock",
            "x",
        ):
            assert client.ask("GET", f"/bankml/log/{path}")[0] == 404, path
        status, headers, _ = client.ask("POST", "/bankml/log/checkpoint", {})
        assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_without_a_log_there_is_nothing(tmp_path):
    application, _ = toy_ollama("Oslo.")
    with House(application) as house:
        connection = HTTPConnection(*house.listening.gateway)
        connection.request("GET", "/bankml/log/checkpoint")
        assert connection.getresponse().status == 404
        connection.close()


# ---- what a client verifies


def test_every_changed_field_of_a_logged_receipt_is_found_by_its_proof(tmp_path):
    """Of an unsigned one: the log alone covers every field."""
    with Logged(tmp_path / "log") as logged:
        for _ in range(5):
            ask(logged.application, body=user("Where?"))
        receipt = logged.receipts()[2]
        found = reader(logged.path)
    proof = prove(found, receipt).text
    assert verify_proof(receipt, proof, None).size == 5
    for name in receipt:
        changed = {**receipt, name: "else"}
        for refusing in (
            lambda changed=changed: prove(found, changed),
            lambda changed=changed: verify_proof(changed, proof, None),
        ):
            with pytest.raises(Refused):
                refusing()
    moved = {**receipt, "log": {**receipt["log"], "index": 3}}
    with pytest.raises(Refused, match="entry 3 of the log is not this receipt"):
        prove(found, moved)
    with pytest.raises(Refused, match="has 5 entries by its checkpoint, and the receipt is entry 7"):
        prove(found, {**receipt, "log": {**receipt["log"], "index": 7}})
    with pytest.raises(Refused, match="the receipt is in the log other, and the log is "):
        prove(found, {**receipt, "log": {"origin": "other", "index": 2}})


def test_every_changed_byte_of_a_proof_is_found(tmp_path, key):
    with Logged(tmp_path / "log", key) as logged:
        for _ in range(5):
            ask(logged.application, body=user("Where?"))
        receipt = logged.receipts()[2]
        proof = prove(reader(logged.path, key.public), receipt).text.encode()
    for at in range(len(proof)):
        for bit in (1, 4, 32, 128):
            altered = proof[:at] + bytes([proof[at] ^ bit]) + proof[at + 1 :]
            with pytest.raises(Refused, match="the proof is "):
                verify_proof(receipt, altered.decode("utf-8", "replace"), key.public)


def test_a_receipt_that_is_longer_than_an_entry_is_recorded_by_its_hash():
    receipt = {"replay": ["x" * 70000]}
    assert json.loads(entry_of(receipt)) == {"receipt_sha256": sha256_hex(b'{"replay":["' + b"x" * 70000 + b'"]}')}
    assert entry_of({"a": 1}) == b'{"a":1}'
