"""What --verify finds: lines that were exchanged, left out or altered, and answers that no model gave."""

import json

import pytest

from bankml.batch.digest import BatchDigest
from bankml.batch.entry import read_entry
from bankml.batch.output import DIGEST
from bankml.cli import main
from bankml.http.json_out import json_bytes
from bankml.receipt.receipt import sha256_hex
from bankml.signing.keys import generate
from tests.batch.cases import command, requests, write_input
from tests.tiny_model import tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("verified")


@pytest.fixture(scope="module")
def model(folder):
    return tiny_model(folder)


@pytest.fixture(scope="module")
def source(folder):
    return write_input(folder / "in.jsonl", requests(22))


@pytest.fixture(scope="module")
def key(folder):
    return generate(str(folder / "key"), None)


@pytest.fixture(scope="module")
def whole(folder, source, model, key):
    output = folder / "out.jsonl"
    assert main(command(source, output, "--sign-key", key.private, model=model.path)) == 2
    return output


@pytest.fixture
def verify(source, model, capfd):
    """Runs the command; its exit code and what it printed."""

    def run(output, *options):
        code = main(["batch", str(source), "--verify", str(output), "--model", model.path, "--quiet", *options])
        printed = capfd.readouterr()
        return code, printed.out + printed.err

    return run


OPTIONS = ("--ctx", "1024", "--embeddings", "--pooling", "last")


def test_a_true_output(whole, verify, key):
    code, printed = verify(whole, "--sample", "100%", "--key", key.public, *OPTIONS)
    counts = "22 lines, 20 receipts fit, 18 answers replayed, 2 lines computed again"
    assert (code, printed) == (0, f"verified: {counts}; the digest is signed by the key {key.key_id}\n")
    code, printed = verify(whole, "--sample", "3", *OPTIONS)
    assert code == 0 and "22 lines, 20 receipts fit" in printed


def rewritten(folder, lines, digest=None):
    """An output of these lines, with its own digest unless one is given."""
    output = folder / "changed.jsonl"
    output.write_bytes(b"".join(line + b"\n" for line in lines))
    made = BatchDigest()
    for line in lines:
        made.add(read_entry(line))
    found = digest or json_bytes(made.to_json("", None))
    (folder / f"changed.jsonl{DIGEST}").write_bytes(found)
    return output


def invented(line):
    """An answer that no model gave, with a receipt that fits it."""
    found = json.loads(line)
    body = found["response"]["body"]
    body["choices"][0]["message"]["content"] = "I made this up"
    body["bankml_receipt"]["response_sha256"] = sha256_hex(b"I made this up")
    return json_bytes(found)


CHANGES = {
    "exchanged": (lambda lines: [lines[1], lines[0], *lines[2:]], "line 1 of", "belongs to another line than 1"),
    "left out": (lambda lines: lines[:-1], "has fewer lines", ""),
    "added": (lambda lines: [*lines, lines[0]], "has more lines", ""),
    "altered": (
        lambda lines: [lines[0].replace(b'"content": "', b'"content": "x', 1), *lines[1:]],
        "line 1 of",
        "has a receipt that does not fit: response_sha256",
    ),
    "invented": (lambda lines: [invented(lines[0]), *lines[1:]], "line 1 of", "is not what the model computes"),
    "another error": (
        lambda lines: [*lines[:10], lines[10].replace(b"expected", b"wanted"), *lines[11:]],
        "line 11 of",
        "is not the error of its request",
    ),
    "another vector": (
        lambda lines: [*lines[:9], lines[9].replace(b'"prompt_tokens": ', b'"prompt_tokens": 1', 1), *lines[10:]],
        "line 10 of",
        "",
    ),
    "no JSON": (lambda lines: [b"{", *lines[1:]], "line 1 of", "is not a line of a batch's output"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_false_output(name, whole, verify, tmp_path):
    change, where, why = CHANGES[name]
    lines = change(whole.read_bytes().splitlines())
    try:
        output = rewritten(tmp_path, lines)
    except Exception:
        output = tmp_path / "changed.jsonl"  # there is a line that has no entry, and so no digest
    code, printed = verify(output, "--sample", "100%", *OPTIONS)
    assert code == 2 and where in printed and why in printed, printed


def test_the_digest_is_another(whole, verify, tmp_path, key):
    lines = whole.read_bytes().splitlines()
    digest = (whole.parent / f"{whole.name}{DIGEST}").read_bytes()
    code, printed = verify(
        rewritten(tmp_path, lines, digest.replace(b'"root": "', b'"root": "0')), "--sample", "1", *OPTIONS
    )
    assert code == 2 and "is not the digest of the output: its root is" in printed
    code, printed = verify(rewritten(tmp_path, lines), "--sample", "1", "--key", key.public, *OPTIONS)
    assert code == 2 and "it is not signed" in printed


def test_what_a_sample_is(verify, whole):
    for text in ("0%", "101%", "0", "x", "1.5", "-1", "%"):
        code, printed = verify(whole, f"--sample={text}")
        assert code == 1 and f"--sample {text} is neither a share" in printed
