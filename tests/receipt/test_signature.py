"""Signed receipts: every change of one field or one byte is found, and the sentence names what it is."""

import copy
import json

import pytest

from bankml.errors import FileProblem
from bankml.receipt.check import check
from bankml.receipt.issuer import DAY, Issuer, signed_bytes, utc
from bankml.receipt.receipt import LayerIdentity, Provenance, Tally
from bankml.receipt.signature import signature_problems
from bankml.signing import ed25519
from bankml.signing.keys import PublicKey, SigningKey

NOW = 1_800_000_000.0
REQUEST = b'{"messages": []}'
PROVENANCE = Provenance("engine 1", "ab" * 32, "play", LayerIdentity("mario", "cd" * 32))
SEEDS_FIELDS = [
    "bankml", "engine", "model_sha256", "guard", "prompt_tokens", "completion_tokens", "ttft_ms", "wall_ms",
    "response_sha256", "request_sha256",
]  # fmt: skip


@pytest.fixture(scope="module")
def key():
    return SigningKey(ed25519.new_key())


def issued(issuer, text="Oslo å"):
    tally = Tally(PROVENANCE, REQUEST, 0.0, issuer=issuer)
    tally.token()
    tally.text(text)
    tally.restored_slot("ef" * 32)
    tally.logprobs(b'{"logprob": -1.5}')
    tally.message("12" * 32, "stop")
    return tally.receipt(3, 2, seed=(1 << 32) - 1)


@pytest.fixture
def receipt(key):
    return issued(Issuer(key, valid_days=30, clock=lambda: NOW))


def problems(receipt, key, now=NOW):
    return list(signature_problems(receipt, key.public, now))


def test_a_signed_receipt(key, receipt):
    assert problems(receipt, key) == []
    assert list(receipt)[: len(SEEDS_FIELDS)] == SEEDS_FIELDS and receipt["signed"] is True
    assert list(receipt)[-4:] == ["signed_at", "expires_at", "key_id", "signature"]
    assert receipt["key_id"] == key.key_id and receipt["signed_at"] == utc(NOW)
    assert problems(json.loads(json.dumps(receipt)), key) == []
    assert problems(dict(reversed(receipt.items())), key) == []  # the order of members means nothing
    without = issued(Issuer(key, clock=lambda: NOW))
    assert "expires_at" not in without and problems(without, key, NOW + 10_000 * DAY) == []


def test_a_field_that_only_a_later_version_knows_is_covered(key):
    receipt = Issuer(key, clock=lambda: NOW).issue({"signed": False, "replay": {"trace": [["prompt", 0, 7]]}})
    assert problems(receipt, key) == []
    receipt["replay"]["trace"][0][2] = 8
    assert "altered" in problems(receipt, key)[0]


def changed(value):
    """Values that differ from `value`."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int | float):
        return [value + 1, -value - 1, str(value), None]
    if isinstance(value, str):
        flipped = ("0" if value[0] != "0" else "1") + value[1:]
        return [flipped, value + " ", value[:-1], value.upper() if value.upper() != value else "", None]
    if isinstance(value, dict):
        return [{**value, name: other} for name, inner in value.items() for other in changed(inner)] + [{}, None]
    raise TypeError(value)


def test_every_changed_removed_or_added_field_is_found(key, receipt):
    tried = 0
    for name, value in receipt.items():
        for other in changed(value):
            assert problems({**receipt, name: other}, key), (name, other)
            tried += 1
        rest = {one: kept for one, kept in receipt.items() if one != name}
        assert problems(rest, key), name
    assert tried > 60
    assert problems({**receipt, "more": 1}, key) and problems({**receipt, "": None}, key)


def test_every_changed_byte_of_a_receipt_is_found_or_means_the_same(key, receipt):
    text = json.dumps(receipt).encode()
    same = 0
    for at in range(len(text)):
        for bit in (0x01, 0x02, 0x10, 0x20, 0x80):
            altered = text[:at] + bytes([text[at] ^ bit]) + text[at + 1 :]
            try:
                read = json.loads(altered)
            except ValueError:
                continue  # no receipt any more
            if isinstance(read, dict) and json.dumps(read).encode() == text:
                same += 1
                assert text[at : at + 1] == b" "  # white space between members
            else:
                assert problems(read, key), altered
    assert same < 300


def test_every_changed_byte_of_the_public_key_is_found(tmp_path, key, receipt):
    pem, path = key.public_pem.encode(), tmp_path / "pub.pem"
    said = set()
    for at in range(len(pem)):
        for byte in {pem[at] ^ 0x01, pem[at] ^ 0x20, pem[at] ^ 0x80, ord("A"), ord("\n"), ord(" ")} - {pem[at]}:
            path.write_bytes(pem[:at] + bytes([byte]) + pem[at + 1 :])
            try:
                other = PublicKey.read(str(path))
            except FileProblem as error:
                said.add(error.message.split(": ", 1)[1])
                continue
            (problem,) = signature_problems(receipt, other, NOW)
            assert problem.startswith(f"the signature is by the key {key.key_id}, and the key given is ")
    assert said and all("key" in sentence for sentence in said)
    for altered in (pem + b"\n", pem[:-1], b"\n" + pem, pem.replace(b"\n", b"\r\n"), b"", pem[:40]):
        path.write_bytes(altered)
        with pytest.raises(FileProblem, match="public key"):
            PublicKey.read(str(path))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"signed": False}, "the receipt has no signature"),
        ({"signature": None}, "the receipt has no signature"),
        ({"key_id": "00" * 32}, f"the signature is by the key {'00' * 32}, and the key given is "),
        ({"key_id": 5}, "the signature is by the key no id that can be read"),
        ({"signature": "ab"}, "the signature is not 128 hex digits"),
        ({"signature": "AB" * 64}, "the signature is not 128 hex digits"),
        ({"signature": "ab" * 64}, "the signature is not that of this receipt: a field or the signature was altered"),
        ({"engine": "engine 2"}, "the signature is not that of this receipt: a field or the signature was altered"),
        ({"seed": 1 << 60}, "the signature cannot be checked: the receipt has no canonical form: "),
        ({"seed": float("nan")}, "the signature cannot be checked"),
    ],
)
def test_what_is_wrong_is_named(key, receipt, change, says):
    (problem,) = problems({**receipt, **change}, key)
    assert problem.startswith(says)


def test_a_signature_expires_at_the_moment_it_names(key, receipt):
    assert problems(receipt, key, NOW + 30 * DAY - 1) == []
    assert problems(receipt, key, NOW + 30 * DAY) == [
        f"the signature has expired: expires_at is {receipt['expires_at']}"
    ]
    assert problems(receipt, key, NOW - 301) == [f"the signature is from the future: signed_at is {utc(NOW)}"]
    assert problems(receipt, key, NOW - 300) == []


def test_times_that_cannot_be_read(key):
    for fields in (
        {"signed_at": 5},
        {"signed_at": "2026-02-31T00:00:00Z"},
        {"expires_at": "soon"},
        {"expires_at": None},
    ):
        signer = Issuer(key, clock=lambda: NOW)
        receipt = signer.issue({"signed": False})
        receipt = {**receipt, **fields}
        receipt["signature"] = key.sign(signed_bytes(receipt)).hex()
        assert "no time that can be read" in problems(receipt, key)[0]


def test_the_signature_of_one_receipt_fits_no_other(key, receipt):
    other = issued(Issuer(key, valid_days=30, clock=lambda: NOW), "else")
    assert problems({**receipt, "signature": other["signature"]}, key)
    assert problems({**other, "signature": receipt["signature"]}, key)


# ---- in an answer


def answer(receipt, text="Oslo å"):
    choice = {"message": {"content": text}, "logprobs": {"content": [{"logprob": -1.5}]}}
    return json.dumps({"choices": [choice], "bankml_receipt": receipt}).encode()


def test_a_receipt_with_a_field_twice_is_refused(receipt):
    body = json.dumps({"choices": [{"message": {"content": "Oslo å"}}], "bankml_receipt": receipt})
    doubled = body.replace('"guard": "play"', '"guard": "play", "guard": "play"')
    assert any('the receipt has "guard" twice' in one for one in check(REQUEST, doubled.encode()).problems)
    assert not any("twice" in one for one in check(REQUEST, body.encode()).problems)


@pytest.mark.parametrize(("schema", "read"), [(1, True), (2, False), (True, False), ("1", False), (None, False)])
def test_a_receipt_of_a_later_schema_is_refused(receipt, schema, read):
    later = copy.deepcopy(receipt) | {"schema": schema}
    found = [one for one in check(REQUEST, answer(later)).problems if "schema" in one]
    assert (found == []) == read
