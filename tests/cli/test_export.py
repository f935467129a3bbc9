"""`export`, read by other tools: securesystemslib verifies the envelope, in-toto-attestation reads the statement."""

import base64
import copy
import json

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf.json_format import ParseDict
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from bankml.cli import main
from bankml.receipt.issuer import UNSIGNED, Issuer
from bankml.receipt.receipt import Provenance, Tally, sha256_hex
from bankml.signing.envelope import pre_authentication
from bankml.signing.keys import SigningKey, generate

REQUEST = b'{"messages": []}'


@pytest.fixture
def key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generate("sign.key", None)
    return SigningKey.read("sign.key", lambda: b"")


@pytest.fixture
def run(tmp_path, capfd):
    def run(issuer, *words, text="Oslo", change=lambda answer: answer):
        tally = Tally(Provenance("e", "ab" * 32, "play"), REQUEST, 0.0, issuer=issuer)
        tally.text("Oslo")
        answer = {"choices": [{"message": {"content": text}}], "bankml_receipt": tally.receipt(1, 1)}
        (tmp_path / "q.json").write_bytes(REQUEST)
        (tmp_path / "a.json").write_text(change(json.dumps(answer)))
        return main(["export", "q.json", "a.json", "--sign-key", "sign.key", *words]), *capfd.readouterr()

    return run


def verifier(key):
    return SSlibKey.from_crypto(load_pem_public_key(key.public_pem.encode()), keyid=key.key_id)


@pytest.mark.parametrize("signed", [False, True])
def test_the_fields_tools_read_it(run, key, tmp_path, signed):
    code, out, err = run(Issuer(key) if signed else UNSIGNED)
    assert (code, err) == (0, "")
    envelope = Envelope.from_dict(json.loads(out))
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert list(envelope.verify([verifier(key)], 1)) == [key.key_id]
    found = json.loads(envelope.payload)
    statement = Statement.copy_from_pb(ParseDict(found, statement_pb2.Statement()))
    statement.validate()
    assert statement.pb.subject[0].digest["sha256"] == sha256_hex(b"Oslo")
    assert found["subject"][1] == {"name": "request", "digest": {"sha256": sha256_hex(REQUEST)}}
    assert found["predicateType"] == "urn:bankml:receipt:1" and found["predicate"]["signed"] is signed
    assert run(UNSIGNED, "-o", "out.json")[:2] == (0, "") and json.loads((tmp_path / "out.json").read_text())


def test_every_changed_part_of_an_envelope_is_found(run, key):
    made = json.loads(run(UNSIGNED)[1])
    payload = base64.b64decode(made["payload"])
    for at in range(0, len(payload), 7):
        other = copy.deepcopy(made)
        other["payload"] = base64.b64encode(payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]).decode()
        with pytest.raises(VerificationError):
            Envelope.from_dict(other).verify([verifier(key)], 1)
    for change in ({"payloadType": "text/plain"}, {"signatures": []}):
        with pytest.raises((VerificationError, ValueError)):
            Envelope.from_dict({**copy.deepcopy(made), **change}).verify([verifier(key)], 1)


def test_only_a_receipt_that_fits_is_exported(run, key):
    code, out, err = run(UNSIGNED, text="Bergen")
    assert (code, out) == (2, "") and err.startswith("refuse: response_sha256 is ")
    generate("other", None)
    code, out, err = run(Issuer(SigningKey.read("other", lambda: b"")))
    assert (code, out) == (2, "") and err.startswith("refuse: the signature is by the key ")
    code, out, err = run(Issuer(key), change=lambda answer: answer.replace('"guard": "play"', '"guard": "stop"'))
    assert (code, out) == (2, "") and "altered" in err
    assert run(UNSIGNED, change=lambda answer: "{}")[0] == 2


def test_the_signed_bytes_are_those_of_the_specification():
    assert pre_authentication("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
