"""What a dishonest server, client or host can do, and by what it is found: the claims of docs/threat-model.md that no
other test shows. Some of them are that something is not found."""

import json
import time

import pytest

from bankml.errors import Refused
from bankml.receipt.check import check
from bankml.receipt.issuer import Issuer, signed_bytes
from bankml.receipt.receipt import sha256_hex
from bankml.receipt.signature import signature_problems
from bankml.signing import ed25519
from bankml.signing.envelope import PAYLOAD_TYPE, pre_authentication
from bankml.signing.keys import SigningKey
from bankml.transparency.checking import prove
from bankml.transparency.note import LogCheckpoint
from bankml.transparency.receipts import ReceiptLog
from bankml.transparency.tree import EMPTY
from bankml.transparency.writer import LogWriter
from tests.api.api_toys import ask, toy_ollama, user
from tests.transparency.logs import reader

BODY = json.dumps(user("Where?", seed=7, temperature=0)).encode()


@pytest.fixture(scope="module")
def key():
    return SigningKey(ed25519.new_key())


def answered(answer, issuer):
    application, library = toy_ollama(answer)
    library.issuer = issuer
    return ask(application, body=BODY).body


def accepted(answer, key):
    """The receipt of an answer that hashes and signature say nothing against."""
    checked = check(BODY, answer)
    assert checked.problems == () and list(signature_problems(checked.receipt, key.public, time.time())) == []
    return checked.receipt


def test_a_server_that_answers_with_another_model_is_found_by_computing_the_answer_again_alone(key):
    """Hashes and signature are about what the server says: they accept it, and hold the server to it."""
    honest, false = (accepted(answered(text, Issuer(key)), key) for text in ("Oslo.", "Bergen."))
    assert false["model_sha256"] == honest["model_sha256"] and false["request_sha256"] == honest["request_sha256"]
    assert false["response_sha256"] != honest["response_sha256"]


def test_a_receipt_by_a_stolen_key_is_not_in_the_log(tmp_path, key):
    log = ReceiptLog(LogWriter(str(tmp_path / "log"), key))
    given = accepted(answered("Oslo.", Issuer(key, log=log)), key)
    log.close()
    thief = LogWriter(str(tmp_path / "other"), key)
    thief.origin = given["log"]["origin"]
    forged = accepted(answered("Bergen.", Issuer(key, log=ReceiptLog(thief))), key)
    thief.close()
    prove(reader(tmp_path / "log", key.public), given)
    with pytest.raises(Refused, match="entry 0 of the log is not this receipt"):
        prove(reader(tmp_path / "log", key.public), forged)


def test_two_views_of_one_log_are_each_valid_and_not_consistent(tmp_path, key):
    """A server that shows each client another log: comparing two checkpoints finds it."""
    views = []
    for name, texts in (("one", ["Oslo.", "Bergen."]), ("other", ["Oslo.", "Tromsø.", "Bodø."])):
        writer = LogWriter(str(tmp_path / name), key)
        writer.origin = "bankml.localhost/both"
        issuer = Issuer(key, log=ReceiptLog(writer))
        for text in texts:
            prove_later = accepted(answered(text, issuer), key)
        issuer.close()
        view = reader(tmp_path / name, key.public)
        prove(view, prove_later)
        views.append((view.verify(), view))
    (one, _), (other, view) = views
    assert one.origin == other.origin
    with pytest.raises(Refused, match="the log was rewritten: its 3 entries do not begin with the 2"):
        view.require_consistent(one, other)


def test_a_log_of_an_old_backup_lacks_the_receipts_since(tmp_path, key):
    path, old = tmp_path / "log", tmp_path / "old"
    log = ReceiptLog(LogWriter(str(path), key))
    answered("Oslo.", Issuer(key, log=log))
    log.close()
    path.rename(old)
    path.mkdir()
    for name in ("checkpoint", "pending"):
        (path / name).write_bytes((old / name).read_bytes())
    log = ReceiptLog(LogWriter(str(path), key))
    lost = accepted(answered("Bergen.", Issuer(key, log=log)), key)
    log.close()
    after = LogCheckpoint.of((path / "checkpoint").read_text())
    log = ReceiptLog(LogWriter(str(old), key))
    answered("Tromsø.", Issuer(key, log=log))
    log.close()
    with pytest.raises(Refused, match="is not this receipt"):
        prove(reader(old, key.public), lost)
    with pytest.raises(Refused, match="the log was rewritten"):
        reader(old, key.public).require_consistent(after, reader(old, key.public).checkpoint()[0])


def test_a_client_that_cuts_or_alters_an_answer_is_found(key):
    application, library = toy_ollama("Oslo is å 🙂.")
    library.issuer = Issuer(key)
    body = json.dumps(user("Where?", stream=True)).encode()
    answer = ask(application, body=body).body
    assert check(body, answer).problems == ()
    events = answer.split(b"\n\n")
    for at, event in enumerate(events[:-1]):
        if b"delta" not in event or json.loads(event[6:])["choices"][0]["delta"].get("content"):
            assert check(body, b"\n\n".join(events[:at] + events[at + 1 :])).problems, event
    assert check(body + b" ", answer).problems and check(body, answer.replace(b'"O"', b'"A"')).problems


def test_a_short_text_can_be_guessed_from_its_receipt(key):
    receipt = accepted(answered("Oslo.", Issuer(key)), key)
    guesses = {sha256_hex(guess): guess for guess in (b"Bergen.", b"Oslo.", b"Yes.", b"No.")}
    assert guesses[receipt["response_sha256"]] == b"Oslo."


def test_the_three_kinds_of_bytes_that_a_key_signs_are_never_the_same():
    kinds = (
        signed_bytes({"signed": True}),
        pre_authentication(PAYLOAD_TYPE, b"{}"),
        LogCheckpoint("bankml.localhost/00", 0, EMPTY).text.encode(),
    )
    assert [one[:6] for one in kinds] == [b'{"sign', b"DSSEv1", b"bankml"]
