"""`bankml log`: what it prints, with which exit code, and what it refuses by name."""

import json
import shutil
from pathlib import Path

import pytest

from bankml.cli import main
from bankml.receipt.issuer import Issuer
from bankml.receipt.receipt import Provenance, Tally
from bankml.signing.keys import SigningKey, generate
from bankml.transparency.receipts import ReceiptLog
from bankml.transparency.writer import LogWriter

REQUEST = b'{"messages": []}'


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Answers 0 to 6 and old.checkpoint (after the third) beside the log `log` and its key."""
    monkeypatch.chdir(tmp_path)
    generate("sign.key", None)
    key = SigningKey.read("sign.key", lambda: b"")
    writer = LogWriter("log", key)
    issuer = Issuer(key, log=ReceiptLog(writer))
    for number in range(7):
        tally = Tally(Provenance("e", "ab" * 32, "play"), REQUEST, 0.0, issuer=issuer)
        tally.text(f"Oslo {number}")
        answer = {"choices": [{"message": {"content": f"Oslo {number}"}}], "bankml_receipt": tally.receipt(1, 1)}
        Path(f"{number}.json").write_text(json.dumps(answer))
        if number == 2:
            Path("old.checkpoint").write_bytes(writer.checkpoint())
    issuer.close()
    shutil.copy("log/checkpoint", "new.checkpoint")

    def run(*words):
        return main(["log", *words]), *capfd.readouterr()

    return run


KEY = ("--key", "sign.key.pub.pem")


def test_a_receipt_is_proven_and_the_proof_verified_without_the_log(run):
    assert run("prove", "3.json", "--log", "log", "-o", "3.tlog-proof", *KEY) == (0, "", "")
    code, out, _ = run("prove", "3.json", "--log", "log")
    assert code == 0 and out == Path("3.tlog-proof").read_text() and out.startswith("c2sp.org/tlog-proof@v1\nindex 3\n")
    shutil.rmtree("log")
    code, out, _ = run("verify-proof", "3.json", "3.tlog-proof", *KEY)
    assert code == 0 and out.startswith("the receipt is in the log bankml.localhost/") and "had 7 entries" in out
    code, _, err = run("verify-proof", "4.json", "3.tlog-proof", *KEY)
    assert code == 2 and err.startswith("refuse: the proof is refused: it does not lead from this receipt to the ")


def test_a_receipt_alone_is_as_good_as_its_answer(run):
    Path("receipt.json").write_text(json.dumps(json.loads(Path("3.json").read_text())["bankml_receipt"], indent=2))
    assert run("prove", "receipt.json", "--log", "log")[:2] == run("prove", "3.json", "--log", "log")[:2]


def test_the_log_is_verified(run):
    code, out, _ = run("verify", "--log", "log", *KEY)
    assert code == 0 and ": 7 entries have the root " in out
    bundle = Path("log/tile/entries/000.p/7")
    bundle.write_bytes(bundle.read_bytes().replace(b'"guard":"play"', b'"guard":"Play"', 1))
    code, _, err = run("verify", "--log", "log")
    assert code == 2 and err == "refuse: log is damaged: tile/0/000.p/7 and the entries differ from entry 0 on\n"


def test_consistency(run):
    code, out, _ = run("consistency", "old.checkpoint", "new.checkpoint", "--log", "log", *KEY)
    assert code == 0 and "is consistent: its 7 entries begin with the 3 of the old checkpoint" in out
    code, _, err = run("consistency", "new.checkpoint", "old.checkpoint", "--log", "log", *KEY)
    assert (code, err) == (2, "refuse: the log has shrunk: from 7 entries to 3\n")


def test_a_log_that_was_written_anew_is_found(run):
    """By one who kept a checkpoint: the server made another log of the same name, without the second answer."""
    origin = Path("old.checkpoint").read_text().split("\n")[0]
    shutil.rmtree("log")
    key = SigningKey.read("sign.key", lambda: b"")
    writer = LogWriter("log", key)
    writer.origin = origin
    for number in (0, 2, 3, 4, 5):
        writer.append(lambda _, number=number: Path(f"{number}.json").read_bytes())
    writer.close()
    assert run("verify", "--log", "log", *KEY)[0] == 0  # in itself it is valid
    code, _, err = run("consistency", "old.checkpoint", "log/checkpoint", "--log", "log", *KEY)
    assert code == 2 and err.startswith(
        "refuse: the log was rewritten: its 5 entries do not begin with the 3 of the old"
    )
    assert run("prove", "1.json", "--log", "log")[0] == 2


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("verify", "--log", "nowhere"), 1, "error: cannot read the checkpoint of nowhere: No such file or directory"),
        (
            ("verify", "--log", "log", "--key", "other.pub.pem"),
            2,
            "refuse: the checkpoint of log is refused: it is not signed by the key given",
        ),
        (("prove", "q.json", "--log", "log"), 2, "refuse: q.json has 0 receipts, not one"),
        (("prove", "bad.json", "--log", "log"), 2, "refuse: bad.json has no receipt: it is neither a JSON object nor"),
        (
            ("prove", "plain.json", "--log", "log"),
            2,
            "refuse: the receipt names no place in a log: its server keeps none",
        ),
        (("verify-proof", "3.json", "bad.json"), 2, "refuse: the proof is refused: it is not a proof"),
        (
            ("consistency", "bad.json", "new.checkpoint", "--log", "log"),
            2,
            "refuse: bad.json is refused: it is not a checkpoint",
        ),
        (
            ("verify", "--log", "http://127.0.0.1:9/bankml/log"),
            1,
            "error: cannot read the checkpoint of http://127.0.0.1:9",
        ),
        (("prove", "3.json"), 1, "error: the following arguments are required: --log"),
        ((), 1, "error: the following arguments are required: WHAT"),
    ],
)
def test_what_is_refused(run, words, code, says):
    generate("other", None)
    Path("q.json").write_bytes(REQUEST)
    Path("bad.json").write_text("hello")
    Path("plain.json").write_text('{"bankml": "0.1.0", "signed": false}')
    found, out, err = run(*words)
    assert (found, out) == (code, "") and err.startswith(says) and err.count("\n") == 1
