"""A server that lies: whatever it changes, with every hash made to fit, is found and named."""

import hashlib
import io
import json

import pytest

from bankml.cli import main
from bankml.receipt.check import check
from tests.replay.served import Served
from tests.replay.test_replay import WORDS, chat
from tests.tiny_model import tiny_model


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    return Served(tiny_model(tmp_path_factory.mktemp("false")))


@pytest.fixture(scope="module")
def exchange(served):
    served.ask(*chat(temperature=0))
    return served.ask(*chat(temperature=1, seed=3, grammar="root ::= [a-z]+", max_tokens=20))


def changed(answer, change):
    """The answer with `change` made to it, and a receipt whose hash of the text fits."""
    value = json.loads(answer)
    change(value, value["bankml_receipt"]["replay"])
    text = value["choices"][0]["message"]["content"]
    value["bankml_receipt"]["response_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(value).encode()


def said(answer, text):
    return changed(answer, lambda value, record: value["choices"][0]["message"].update(content=text))


def of_receipt(name, new):
    return lambda value, record: value["bankml_receipt"].update({name: new})


def of_record(name, new):
    return lambda value, record: record.update({name: new})


def of_answer(name, new):
    def change(value, record):
        one = record["answers"][0]
        one[name] = new(one[name]) if callable(new) else new

    return change


def other_batches(spans):
    """The tokens of the answer as one micro-batch. How those in the cache were computed is taken from the receipt."""
    *before, (position, _, kept) = spans
    return [*before, [position, kept, kept]]


FALSE = {
    "model": (of_receipt("model_sha256", "ab" * 32), "model", "a model with the sha256 abab"),
    "layer": (of_receipt("layer", {"name": "mine", "sha256": "cd" * 32}), "layer", "the derived model mine"),
    "version": (of_record("version", 2), "record", "replay.version is 2, this bankml replays version 1"),
    "bits": (of_record("arithmetic", "other"), "record", "replay.arithmetic is 'other'"),
    "no cache": (of_record("cache_type", "x"), "arithmetic", "BANKML_CACHE_TYPE must be"),
    "no threads": (of_record("llama_threads", 0), "arithmetic", "BANKML_LLAMA_THREADS must be"),
    "no context": (of_record("n_ctx", 0), "arithmetic", "the context must be"),
    "cache": (of_record("cache_type", "q8_0"), None, "tokens_sha256"),
    "route": (of_record("route", "/v1/other"), "route", "'/v1/other' are not replayed"),
    "template": (lambda v, r: r["template"].update(sha256="ef" * 32), "template", "the chat template was efef"),
    "special": (lambda v, r: r["template"].update(content_special="x"), "template", "--content-special 'x'"),
    "fields": (of_record("fields", {"max_tokens": 4}), None, "token 4 differs"),
    "prompt": (of_answer("prompt_sha256", "ab" * 32), "prompt", "the prompt of answer 0 has other tokens here"),
    "tokens": (of_answer("tokens_sha256", "ab" * 32), None, "answers[0].tokens_sha256 is abab"),
    "seed": (of_answer("seed", 4), None, "tokens_sha256"),
    "finish": (of_answer("finish_reason", "stop"), None, "answers[0].finish_reason is stop, computed is length"),
    "cached": (of_answer("cached_tokens", 3), None, "trace"),
    "trace": (of_answer("trace", other_batches), None, "trace"),
    "hole": (of_answer("trace", lambda spans: spans[1:]), "trace", "its spans"),
    "no trace": (of_answer("trace", None), "trace", "cannot be replayed"),
    "no record": (lambda v, r: v["bankml_receipt"].pop("replay"), "record", "does not say how the answer was computed"),
    "no answers": (of_record("answers", []), "record", "replay.answers is not an array of answers"),
    "two answers": (
        lambda v, r: r.update(answers=r["answers"] * 2),
        "request",
        "asks for 1 answers, the receipt is of 2",
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_field(served, exchange, name):
    request, answer = exchange
    change, precondition, sentence = FALSE[name]
    verdict = served.verdict(request, changed(answer, change))
    assert not verdict.ok and verdict.precondition == precondition, verdict
    assert sentence in "; ".join(verdict.problems), verdict


def test_every_letter_that_is_another(served, exchange):
    """The token is named, with both candidates; what the model computed is what the true answer has."""
    request, answer = exchange
    true = json.loads(answer)["choices"][0]["message"]["content"]
    for at in range(len(true)):
        text = true[:at] + ("q" if true[at] != "q" else "z") + true[at + 1 :]
        false = said(answer, text)
        assert check(request, false).ok
        verdict = served.verdict(request, false)
        assert verdict.result == "different" and verdict.difference.position == at
        assert verdict.difference.computed.text == true[at] and verdict.difference.answered.text == text[at]
        assert 0 <= verdict.difference.answered.probability <= 1


def test_an_answer_that_was_cut_or_continued(served, exchange):
    request, answer = exchange
    true = json.loads(answer)["choices"][0]["message"]["content"]
    cut = served.verdict(request, said(answer, true[:5])).difference
    assert cut.position == 5 and cut.answered is None and cut.computed.text == true[5]
    longer = served.verdict(request, said(answer, true + "x")).difference
    assert longer.position == len(true) and longer.answered.text == "x" and longer.computed is None


def test_every_field_of_the_request(served, exchange):
    """The request is covered by its hash; where that was made to fit, other tokens are computed."""
    request, answer = exchange
    for name, value in {"temperature": 0, "seed": 9, "max_tokens": 19, "messages": WORDS[:1] * 2}.items():
        other = json.dumps({**json.loads(request), name: value}).encode()
        assert served.verdict(other, answer).precondition == "receipt"
        fits = changed(answer, of_receipt("request_sha256", hashlib.sha256(other).hexdigest()))
        # The record's seed is that which was drawn with, whatever the request asks for.
        assert served.verdict(other, fits).ok == (name == "seed")


# ---- the command


@pytest.fixture
def run(exchange, tmp_path, capfd):
    (tmp_path / "request.json").write_bytes(exchange[0])
    (tmp_path / "answer.json").write_bytes(exchange[1])
    pair = [str(tmp_path / "request.json"), str(tmp_path / "answer.json")]

    def run_one(*words, answer=None):
        if answer is not None:
            (tmp_path / "answer.json").write_bytes(answer)
        code = main(["replay", *pair, *words])
        return (code, *capfd.readouterr())

    return run_one


def test_the_command(served, run):
    code, out, _ = run("--model", served.verified.path)
    assert code == 0 and out.startswith("equal: 20 tokens computed again in ")
    code, out, _ = run("--model", served.verified.path, "--json")
    assert code == 0 and json.loads(out)["result"] == "equal"
    code, out, err = run()
    assert code == 1 and "name the model's file with --model" in err


def test_the_command_with_a_false_answer(served, exchange, run):
    true = json.loads(exchange[1])["choices"][0]["message"]["content"]
    code, out, err = run("--model", served.verified.path, answer=said(exchange[1], "Q" + true[1:]))
    assert code == 2 and "token 0 differs: computed" in err and "the answer has 'Q'" in err
    code, out, _ = run("--model", served.verified.path, "--json")
    found = json.loads(out)
    assert code == 2 and found["result"] == "different" and found["difference"]["answered"]["text"] == "Q"


def test_the_command_finds_the_file_by_its_sha256(served, run, tmp_path):
    code, out, _ = run("--registry", served.verified.path.rsplit("/", 1)[0])
    assert code == 0 and out.startswith("equal")
    (tmp_path / "empty").mkdir()
    code, _, err = run("--registry", str(tmp_path / "empty"))
    assert code == 2 and "is pinned in" in err


def test_an_answer_of_generate(served, tmp_path, capfd, monkeypatch):
    (tmp_path / "request").write_bytes(b"a text\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a text\n")))
    options = ["--json", "--max", "9", "--sample", "--temp", "1", "--ctx", "512"]
    assert main(["generate", served.verified.path, *options]) == 0
    (tmp_path / "answer").write_text(capfd.readouterr().out)
    pair = [str(tmp_path / "request"), str(tmp_path / "answer")]
    assert main(["replay", *pair, "--model", served.verified.path]) == 0
    assert "computed again" in capfd.readouterr().out
