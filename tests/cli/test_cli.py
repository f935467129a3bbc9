import json
import os
import pty
import signal
import subprocess
import sys
import time
from hashlib import sha256

import pytest

import bankml
from bankml.cli import main
from bankml.cli.serve import parse_address
from bankml.errors import UsageError
from tests.attacks.build import ARCH, gguf, string, tensor

GOOD = gguf(
    (ARCH, string("general.name", "Small\n")), (tensor("a.weight", (32, 2), 8, 0), tensor("b", (8,), 0, 96)), 128
)
HEX = sha256(GOOD).hexdigest()
COMMAND = [sys.executable, "-m", "bankml"]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.gguf"
    path.write_bytes(GOOD)
    return path


@pytest.fixture
def run(capfd):
    def run_one(*command):
        code = main([str(word) for word in command])
        out, err = capfd.readouterr()
        return code, out, err

    return run_one


def test_version(run):
    assert run("version") == (0, f"bankml {bankml.__version__}\n", "")


def test_guard(run, model):
    assert run("guard", model) == (0, "play: m.gguf: GGUF v3, llama, 2 tensors (1 F32, 1 Q8_0), engine mainline\n", "")
    code, out, err = run("guard", model, "--json", "--engine", "prism")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "verdict": "play",
        "engine": "prism",
        "gguf_version": 3,
        "arch": "llama",
        "name": "Small\n",
        "tensors": 2,
        "types": {"F32": 1, "Q8_0": 1},
        "kv_f16_bytes_per_token": None,
        "native": {
            "supported": False,
            "reason": "unsupported model: tensor 'token_embd.weight' is missing",
            "computed": {"F32": 1, "Q8_0": 1},
            "not_computed": {},
        },
    }
    odd = gguf((ARCH,), (tensor("a", (64, 2), 40, 0), tensor("b", (8,), 0, 96)), 128)
    model.write_bytes(odd)
    code, out, err = run("guard", model, "--json")
    assert json.loads(out)["native"]["not_computed"] == {"a": "NVFP4"}
    model.write_bytes(GOOD[:-1])
    says = "tensor 'b' needs 32 bytes and has 31 before the next tensor or the end of the file"
    assert run("guard", model) == (2, "", f"refuse: m.gguf: guard refused: {says}\n")
    code, out, err = run("guard", model, "--json")
    assert (code, json.loads(out)["verdict"], json.loads(out)["reasons"], err) == (2, "refuse", [says], "")
    model.write_bytes(GOOD[:20])
    code, out, err = run("guard", model)
    assert (code, out) == (3, "") and err.startswith("need_more: m.gguf: guard needs ")
    code, out, err = run("guard", model, "--json")
    assert code == 3 and json.loads(out)["need_bytes"] > 20


def test_sha256(run, model):
    assert run("sha256", model) == (0, f"{HEX}  {model}\n", "")


def test_pin_from_nothing_to_verified(run, model):
    assert run("pin", model, "--fork", "F") == (1, "", "error: cannot read F: no such file or directory\n")
    code, out, err = run("pin", model, "--fork", "F", "--record")
    assert (code, err) == (0, "") and out.startswith(f"m.gguf sha256 {HEX}: recorded in F (trust on first use")
    assert run("pin", model, "--fork", "F") == (0, f"m.gguf sha256 {HEX}: as pinned\n", "")
    code, out, err = run("verify", model, "--fork", "F")
    assert (code, err) == (0, "") and out.startswith("play: m.gguf: ") and HEX in out
    code, out, err = run("verify", model, "--fork", "F", "--json")
    report = json.loads(out)
    assert (report["verdict"], report["file"], report["bytes"], report["sha256"]) == ("play", "m.gguf", len(GOOD), HEX)


def test_pin_records_what_was_given_only(run, model):
    zeros = "0" * 64
    assert run("pin", model, "--fork", "F", "--record", "--sha256", zeros) == (
        2,
        "",
        f"refuse: m.gguf sha256 {HEX} != given {zeros}: refused\n",
    )
    assert not os.path.exists("F")
    code, out, _ = run("pin", model, "--fork", "F", "--record", "--sha256", HEX.upper())
    assert code == 0 and out.endswith("recorded in F (as given)\n")
    assert run("pin", model, "--fork", "F", "--sha256", HEX)[0] == 1
    assert run("pin", model, "--fork", "F", "--record", "--sha256", "12")[0] == 1


def test_refusals_of_the_pin(run, model, tmp_path):
    (tmp_path / "F").write_text("{}")
    says = "m.gguf has no sha256 record in FORK.json: unpinned, refused"
    for command in ("pin", "verify"):
        assert run(command, model, "--fork", "F") == (2, "", f"refuse: {says}\n")
    code, out, err = run("verify", model, "--fork", "F", "--json")
    assert (code, json.loads(out), err) == (2, {"verdict": "refuse", "reasons": [says]}, "")


def test_usage_is_exit_1_and_one_line(run, model):
    for command in (
        (),
        ("gurd",),
        ("guard",),
        ("guard", model, "--engin", "prism"),
        ("verify", model),
        ("convert", model),
    ):
        code, out, err = run(*command)
        assert (code, out) == (1, "") and err.startswith("error: ") and err.count("\n") == 1


def test_a_name_that_paints_the_terminal(run, model):
    name = model.with_name("\x1b[2J\nx\udcff")
    model.rename(name)
    assert run("guard", name)[1] == (
        "play: \\x1b[2J\\nx\\udcff: GGUF v3, llama, 2 tensors (1 F32, 1 Q8_0), engine mainline\n"
    )


def test_convert(run, model):
    code, out, err = run("convert", model, "-o", "out.gguf", "--outtype", "f16")
    assert (code, out, err) == (0, "out.gguf: 2 tensors, matrices in F16\n", "")
    assert run("convert", model, "-o", "out.gguf", "--outtype", "f16")[0] == 1
    assert run("convert", model, "-o", "out.gguf", "--outtype", "f16", "--force")[0] == 0
    code, out, err = run("convert", model, "-o", "other.gguf", "--outtype", "q8_0", "--imatrix", "i.gguf")
    assert (code, out) == (1, "") and err.startswith("error: --imatrix is not supported")
    assert run("convert", model, "-o", "other.gguf", "--outtype", "q1_0")[2].startswith(
        "refuse: m.gguf: tensor 'a.weight' has rows"
    )


def test_serve_checks_its_arguments_before_it_reads_anything(run, model):
    for words, says in (
        ((), "name an engine: --native, --spawn LLAMA_SERVER, or the --upstream HOST:PORT"),
        (("--native", "--spawn", "x"), "--native and --spawn exclude each other"),
        (("--spawn", "x", "--slot-dir", "nowhere"), "--slot-dir nowhere is not a folder"),
        (("--native", "--ctx", "0"), "--ctx 0 is out of range"),
        (("--native", "--threads", "0"), "--threads 0 is out of range"),
        (("--native", "--listen", "10.0.0.1:1"), "--listen 10.0.0.1:1 is not loopback"),
        (("--native", "--upstream", "127.0.0.1:18093"), "--listen and --upstream are both 127.0.0.1:18093"),
        (("--upstream", "localhost:18093"), "--listen and --upstream are both localhost:18093"),
        (("--native",), f"there is no {model}.FORK.json beside the model"),
    ):
        code, out, err = run("serve", model, *words)
        assert (code, out) == (1, "") and says in err and err.count("\n") == 1


def test_addresses():
    assert parse_address("--listen", "127.0.0.1:1") == ("127.0.0.1", 1)
    assert parse_address("--listen", "localhost:65535") == ("localhost", 65535)
    assert parse_address("--listen", "[::1]:80") == ("::1", 80)
    for text in (
        "",
        "x",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:8²",
        ":80",
        "::1:80",
        "127.0.0.1:99999999",
    ):
        with pytest.raises(UsageError, match="is not HOST:PORT"):
            parse_address("--listen", text)
    for text in ("0.0.0.0:80", "[::]:80", "127.0.0.2:80", "example.com:80", "[127.0.0.1:80", "LOCALHOST.evil:80"):
        with pytest.raises(UsageError):
            parse_address("--listen", text)


def big(path, nbytes):
    """A model of one large matrix; sparse, so that it costs no disk."""
    rows = nbytes // 4096
    head = gguf((ARCH,), (tensor("w.weight", (1024, rows), 0, 0),), 1)
    path.write_bytes(head)
    os.truncate(path, len(head) - 1 + rows * 4096)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_with_nothing_left(tmp_path, number, code):
    big(tmp_path / "in.gguf", 1 << 30)
    command = [*COMMAND, "convert", str(tmp_path / "in.gguf"), "-o", str(tmp_path / "out.gguf"), "--outtype", "q1_0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        deadline = time.monotonic() + 20
        while not list(tmp_path.glob(".out.gguf.*.part")) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(number)
        out, err = child.communicate(timeout=20)
    assert child.returncode == code and out == ""
    assert err == ("error: interrupted\n" if number == signal.SIGINT else "")
    assert [path.name for path in tmp_path.iterdir()] == ["in.gguf"]


def test_a_bar_on_a_terminal_and_none_in_a_pipe(tmp_path):
    path = tmp_path / "in.gguf"
    big(path, 64 << 20)
    piped = subprocess.run([*COMMAND, "sha256", str(path)], capture_output=True, text=True, check=True)
    assert piped.stderr == "" and piped.stdout.endswith(f"  {path}\n")
    ours, theirs = pty.openpty()
    try:
        shown = subprocess.run(
            [*COMMAND, "sha256", str(path)], stdout=subprocess.PIPE, stderr=theirs, text=True, check=True
        )
        os.set_blocking(ours, False)
        bar = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown.stdout == piped.stdout
    assert "hashing in.gguf" in bar and "64.0M" in bar


def test_a_reader_that_left(model):
    ours, theirs = os.pipe()
    os.close(ours)
    ran = subprocess.run([*COMMAND, "guard", str(model)], stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_an_encoding_that_lacks_a_character(model):
    name = model.with_name("é☃.gguf")
    model.rename(name)
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ran = subprocess.run([*COMMAND, "guard", str(name)], capture_output=True, env=environment, check=True)
    assert ran.stdout.startswith(b"play: \xe9\\u2603.gguf: ")


def test_version_and_help_load_nothing_heavy():
    heavy = ("numpy", "asyncio", "jinja2", "hashlib", "json", "tqdm", "bankml.gate.guard", "bankml._native")
    for words in (["version"], ["--help"]):
        code = f"import sys; from bankml.cli import main\ntry: main({words})\nexcept SystemExit: pass\n"
        code += f"print([name for name in {heavy} if name in sys.modules])"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        loaded = eval(ran.stdout.splitlines()[-1])
        # An editable installation's own finder may have loaded json before us.
        assert set(loaded) <= {"json"}


SPARED = """
import ctypes, os
from bankml.cli import main
main(["version"])
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(getenv(b"OPENBLAS_NUM_THREADS"), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize(("given", "seen"), [({}, "b'1' None"), ({"OPENBLAS_NUM_THREADS": "3"}, "b'3' 3")])
def test_numpy_begins_no_threads_unless_told_to(given, seen):
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", SPARED], env=environment | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == seen
