"""`bankml check`: files and stdin, streamed or not, and what is said of each false field."""

import io
import json
from hashlib import sha256

import pytest

from bankml.cli import main
from bankml.receipt.receipt import Provenance, Tally

REQUEST = b'{"messages": [\n{"role": "user", "content": "Say hello."}]}\n'
MODEL = b"weights"


def receipt(request=REQUEST, text="Oslo å"):
    tally = Tally(Provenance("e", sha256(MODEL).hexdigest(), "play"), request, 0.0)
    tally.text(text)
    return tally.receipt(None, 2)


def whole(text="Oslo å", **of):
    return json.dumps({"choices": [{"message": {"content": text}}], "bankml_receipt": receipt(**of)}).encode()


def streamed(text="Oslo å", **of):
    events = [json.dumps({"choices": [{"delta": {"content": c}}]}) for c in text]
    return "".join(
        f"data: {e}\n\n" for e in [*events, json.dumps({"bankml_receipt": receipt(**of)}), "[DONE]"]
    ).encode()


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.gguf").write_bytes(MODEL)
    (tmp_path / "other.gguf").write_bytes(b"other")

    def run(answer, *words, request=REQUEST, names=("q.json", "a.json"), stdin=b""):
        (tmp_path / "q.json").write_bytes(request)
        (tmp_path / "a.json").write_bytes(answer)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(["check", *names, *words])
        return code, *capfd.readouterr()

    return run


@pytest.mark.parametrize("form", [whole, streamed])
def test_a_receipt_that_fits(run, form):
    assert run(form()) == (0, "the receipt fits: response_sha256, request_sha256 are true\n", "")
    code, out, _ = run(form(), "--model", "m.gguf")
    assert (code, out) == (0, "the receipt fits: response_sha256, request_sha256, model_sha256 are true\n")


@pytest.mark.parametrize("form", [whole, streamed])
def test_each_false_field_is_named(run, form):
    for answer, words, request, field in (
        (form().replace(b"O", b"0", 1), (), REQUEST, "response_sha256"),
        (form(), (), REQUEST + b" ", "request_sha256"),
        (form(), ("--model", "other.gguf"), REQUEST, "model_sha256"),
    ):
        code, out, err = run(answer, *words, request=request)
        assert (code, out) == (2, "") and err.startswith(f"refuse: {field} is ") and err.count("_sha256 is ") == 1
    code, _, err = run(form().replace(b"O", b"0", 1), "--model", "other.gguf", request=b"")
    assert code == 2 and err.count("_sha256 is ") == 3 and err.count("\n") == 1


def test_line_ends_that_curl_left_out(run):
    answer = whole(request=REQUEST.replace(b"\n", b""))
    code, _, err = run(answer)
    assert code == 2 and "--data-binary keeps them" in err
    assert "--data-binary" not in run(whole(request=b"else"))[2]


def test_stdin(run):
    assert run(b"", names=("q.json", "-"), stdin=streamed())[0] == 0
    assert run(whole(), names=("-", "a.json"), stdin=REQUEST)[0] == 0
    code, _, err = run(whole(), names=("-", "-"))
    assert code == 1 and "only one of the two can come from stdin" in err


def test_what_cannot_be_checked(run):
    assert run(b"hello")[2] == "refuse: the answer cannot be read: it is neither a JSON object nor a stream of events\n"
    for names, most in ((("/dev/zero", "a.json"), 16 << 20), (("q.json", "/dev/zero"), 256 << 20)):
        code, _, err = run(whole(), names=names)
        assert (code, err) == (1, f"error: /dev/zero is longer than {most} bytes\n")
    assert run(b"{}", "--model", "nowhere.gguf")[2] == "refuse: the answer carries 0 receipts, not one\n"
    assert run(whole(), names=("q.json", "nowhere.json"))[::2] == (
        1,
        "error: cannot read nowhere.json: no such file or directory\n",
    )
    code, _, err = run(whole(), "--model", "nowhere.gguf")
    assert code == 1 and "nowhere.gguf" in err
