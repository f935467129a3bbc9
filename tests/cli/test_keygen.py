"""`keygen`, and keys on the command line: how a passphrase is given, and what is said without the package for it."""

import io
import json
import os
import pty
import select
import subprocess
import sys

import pytest

from bankml.cli import main
from bankml.receipt.issuer import Issuer
from bankml.receipt.receipt import Provenance, Tally
from bankml.signing.keys import SigningKey, generate

REQUEST = b'{"messages": []}'
ALTERED = "the signature is not that of this receipt: a field or the signature was altered"
COMMAND = [sys.executable, "-m", "bankml"]


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))

    def run(*words):
        code = main(list(words))
        return code, *capfd.readouterr()

    return run


def write(name, data, mode=0o600):
    with open(name, "wb") as file:
        file.write(data)
    os.chmod(name, mode)


def signed_answer(key, days=None):
    tally = Tally(Provenance("e", "ab" * 32, "play"), REQUEST, 0.0, issuer=Issuer(key, days))
    tally.text("Oslo")
    return json.dumps({"choices": [{"message": {"content": "Oslo"}}], "bankml_receipt": tally.receipt(1, 1)}).encode()


def test_a_key_is_made_and_an_answer_checked_with_it(run):
    code, out, err = run("keygen", "sign.key")
    assert (code, err) == (0, "") and out.splitlines()[1:] == [
        "private: sign.key (mode 0600, not encrypted)",
        "public: sign.key.pub.pem",
    ]
    key = SigningKey.read("sign.key", lambda: b"")
    assert out.splitlines()[0] == f"key_id: {key.key_id}"
    write("q.json", REQUEST)
    write("a.json", signed_answer(key))
    code, out, _ = run("check", "q.json", "a.json", "--key", "sign.key.pub.pem")
    fits = "the receipt fits: response_sha256, request_sha256 are true"
    assert (code, out) == (0, f"{fits}; signed by the key {key.key_id}\n")
    write("a.json", signed_answer(key).replace(b'"engine": "e"', b'"engine": "f"'))
    assert run("check", "q.json", "a.json")[0] == 0  # nobody but the signature covers it
    code, _, err = run("check", "q.json", "a.json", "--key", "sign.key.pub.pem")
    assert (code, err) == (
        2,
        "refuse: the signature is not that of this receipt: a field or the signature was altered\n",
    )
    generate("other", None)
    assert run("check", "q.json", "a.json", "--key", "other.pub.pem")[2].startswith(
        "refuse: the signature is by the key"
    )
    assert run("check", "q.json", "a.json", "--key", "nowhere")[::2] == (
        1,
        "error: cannot read nowhere: no such file or directory\n",
    )


def test_nothing_is_overwritten(run):
    write("sign.key", b"mine")
    code, out, err = run("keygen", "sign.key")
    assert (code, out) == (1, "") and "sign.key exists: a key is never overwritten" in err
    assert not os.path.exists("sign.key.pub.pem")


def test_a_passphrase_from_a_file(run):
    write("secret", b"correct horse\n")
    assert "(mode 0600, encrypted)" in run("keygen", "sign.key", "--passphrase-file", "secret")[1]
    assert SigningKey.read("sign.key", lambda: b"correct horse").key_id
    write("secret", b"x\n", 0o644)
    assert "chmod 600" in run("keygen", "other.key", "--passphrase-file", "secret")[2]
    code, _, err = run("keygen", "other.key", "--passphrase", "--passphrase-file", "secret")
    assert code == 1 and "exclude each other" in err and not os.path.exists("other.key")


def test_without_a_terminal_nothing_is_typed(run):
    code, _, err = run("keygen", "sign.key", "--passphrase")
    assert code == 1 and "no terminal to type it at" in err and not os.path.exists("sign.key")


PROMPTS = (b": ", b"the same again: ")


def typed(words, *lines):
    """Exit code and the terminal's text of a command at a terminal of its own: a line is typed at each prompt."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(words[0], words)
    shown, left = b"", list(zip(PROMPTS, lines, strict=False))
    try:
        while select.select([terminal], [], [], 30)[0] and (part := os.read(terminal, 4096)):
            shown += part
            if left and shown.endswith(left[0][0]):
                os.write(terminal, left.pop(0)[1] + b"\n")
    except OSError:  # the other end is closed
        pass
    os.close(terminal)  # ends a command that still waits
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_a_passphrase_typed_at_a_terminal_is_not_shown(tmp_path):
    path = str(tmp_path / "sign.key")
    code, shown = typed([*COMMAND, "keygen", path, "--passphrase"], b"hunter2", b"hunter2")
    assert code == 0 and "hunter2" not in shown and "encrypted" in shown
    assert SigningKey.read(path, lambda: b"hunter2").key_id
    code, shown = typed([*COMMAND, "keygen", path + "2", "--passphrase"], b"hunter2", b"hunter3")
    assert code == 1 and "the two passphrases differ" in shown and not os.path.exists(path + "2")


@pytest.mark.parametrize("option", ["--log-sync", "--log-optional"])
def test_options_of_a_log_need_one(run, option):
    for name in ("m.gguf", "m.gguf.FORK.json"):
        write(name, b"")
    code, _, err = run("serve", "m.gguf", "--native", option, *(["always"] if option == "--log-sync" else []))
    assert (code, err) == (1, f"error: {option} has no effect without --log\n")


@pytest.mark.parametrize("option", ["--sign-days", "--sign-passphrase-file"])
def test_options_of_a_key_need_one(run, option):
    for name in ("m.gguf", "m.gguf.FORK.json"):
        write(name, b"")
    code, _, err = run("serve", "m.gguf", "--native", option, "3")
    assert (code, err) == (1, f"error: {option} has no effect without --sign-key\n")


def test_generate_signs_what_it_prints(run):
    generate("sign.key", None)
    code, _, err = run("generate", "m.gguf", "--sign-key", "sign.key")
    assert code == 1 and "give --json with it" in err


BLOCKED = """
import sys
sys.modules["cryptography"] = None
from bankml.cli import main
sys.exit(main(sys.argv[1:]))
"""
INSTALL = "error: signatures need the Python package cryptography: install it with pip install 'bankml[sign]'\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("keygen", "new.key"), INSTALL),
        (("check", "q.json", "a.json", "--key", "sign.key.pub.pem"), INSTALL),
        (("serve", "m.gguf", "--native", "--sign-key", "sign.key"), INSTALL),
        (("serve", "m.gguf", "--upstream", "127.0.0.1:9", "--sign-key", "sign.key"), INSTALL),
        (("check", "q.json", "a.json"), ""),
    ],
)
def test_without_the_package_a_sentence_says_what_to_install(tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    generate("sign.key", None)
    for name in ("m.gguf", "m.gguf.FORK.json"):
        write(name, b"")
    write("q.json", REQUEST)
    write("a.json", signed_answer(SigningKey.read("sign.key", lambda: b"")))
    ran = subprocess.run([sys.executable, "-c", BLOCKED, *words], capture_output=True, text=True, check=False)
    assert ran.stderr == says and ran.returncode == bool(says)
    assert not os.path.exists("new.key")
