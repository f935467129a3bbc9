"""docs/receipt.schema.json: every receipt that is issued follows it, so do those of the first versions, and the page
explains each of its fields."""

import copy
import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from bankml.receipt.issuer import Issuer
from bankml.receipt.receipt import LayerIdentity, Provenance, Tally
from bankml.signing import ed25519
from bankml.signing.keys import SigningKey

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "receipt.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
FIRST = {
    "bankml": "0.0.6",
    "engine": "llama.cpp b11192",
    "model_sha256": "ab" * 32,
    "guard": "play",
    "prompt_tokens": None,
    "completion_tokens": None,
    "ttft_ms": None,
    "wall_ms": 1.5,
    "response_sha256": "cd" * 32,
    "request_sha256": "ef" * 32,
    "signed": False,
}
"""A receipt as the first versions made it."""


def issued(issuer, layer=None):
    tally = Tally(Provenance("engine", "ab" * 32, "play", layer), b"{}", 0.0, issuer=issuer)
    tally.token()
    return tally


def receipts():
    full = issued(Issuer(SigningKey(ed25519.new_key()), 30), LayerIdentity("mario", "cd" * 32))
    full.restored_slot("ef" * 32)
    full.logprobs(b"{}")
    full.message("12" * 32, "stop")
    yield full.receipt(1, 2, seed=7)
    yield issued(Issuer(SigningKey(ed25519.new_key()))).receipt(None, None)
    yield issued(Issuer()).receipt(1, 2)
    yield Issuer().issue({**FIRST, "outcome": "cancelled", "log": {"origin": "bankml.localhost/0", "index": 0}})
    yield FIRST


@pytest.mark.parametrize("receipt", list(receipts()))
def test_every_receipt_follows_the_schema(receipt):
    assert [error.message for error in VALIDATOR.iter_errors(receipt)] == []
    assert VALIDATOR.is_valid(receipt | {"of_a_later_version": 1})


def test_what_does_not_follow_it():
    signed = next(receipts())
    for name in SCHEMA["required"]:
        broken = copy.deepcopy(signed)
        del broken[name]
        assert not VALIDATOR.is_valid(broken), name
    for change in ({"schema": 2}, {"model_sha256": "AB" * 32}, {"prompt_tokens": -1}, {"signed": False}, {"seed": -1}):
        assert not VALIDATOR.is_valid(signed | change), change
    assert not VALIDATOR.is_valid({name: value for name, value in signed.items() if name != "key_id"})


def test_the_page_explains_every_field():
    page = (DOCS / "receipts.md").read_text().split("## Check one")[0]
    explained = {name for row in re.findall(r"^\| (`.*?) \|", page, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert set(SCHEMA["properties"]) - {"replay"} <= explained
