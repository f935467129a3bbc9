"""`serve` up to the two calls it makes: what it verifies, what it hands over, what it says."""

import json
import math
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bankml.cli import main
from bankml.cli.parser import build_parser
from bankml.errors import Refused, UsageError
from bankml.signing.keys import generate
from tests.attacks.build import ARCH, gguf, tensor
from tests.tiny_model import tiny_model

NOT_PLAYED = gguf((ARCH,), (tensor("a", (32, 2), 8, 0), tensor("b", (8,), 0, 96)), 128)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a model that is played."""
    with open(tiny_model(tmp_path_factory.mktemp("serve"), n_layer=1).path, "rb") as file:
        return file.read()


@pytest.fixture
def hex64(good):
    return sha256(good).hexdigest()


@pytest.fixture
def house(tmp_path, monkeypatch, good, hex64):
    """A pinned model in the current folder, and stand-ins for the two rooms above; gathers what they are told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.gguf").write_bytes(good)
    record = {"files": [{"path": "m.gguf", "bytes": len(good), "sha256": hex64}]}
    (tmp_path / "m.gguf.FORK.json").write_text(json.dumps(record))
    told = {}

    def build_application(verified, options, serving, more):
        told.update(verified=verified, **vars(options), **vars(serving))
        if options.n_ctx == 1:
            raise Refused("weights are Q8_0")
        return SimpleNamespace(parallel=options.parallel or 3)

    def serve(application, listen, engine, *, ready, refused, at_once, api_keys=None, origins=None):
        told.update(application=application._application, listen=listen, engine=engine)
        ready(None)
        return 0

    def require_free(*addresses):
        if ("127.0.0.1", 1) in addresses:
            raise UsageError("cannot listen at 127.0.0.1:1: address already in use")

    routes, server = ModuleType("routes"), ModuleType("server")
    routes.build_application, routes.Serving, server.serve = build_application, SimpleNamespace, serve
    server.require_free = require_free
    monkeypatch.setitem(sys.modules, "bankml.api.routes", routes)
    monkeypatch.setitem(sys.modules, "bankml.http.server", server)
    return told


def test_a_verified_file_is_served(house, hex64, capfd):
    assert main(["serve", "m.gguf", "--native"]) == 0
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == "" and len(lines) == 4
    assert lines.pop(0) == "parallel: 3 at once, --queue 256 more waiting"
    assert lines[0] == f"verified: m.gguf: guard play, sha256 {hex64} as pinned"
    assert lines[1] == (
        "listening: http://127.0.0.1:18093 (page: http://127.0.0.1:18093/bankml/ui;"
        " llama-server's endpoints: http://127.0.0.1:18092)"
    )
    assert lines[2].startswith(
        "ask: curl -s http://127.0.0.1:18093/v1/chat/completions -H 'Content-Type: application/json'"
    )
    assert json.loads(lines[2].split("-d '")[1].removesuffix("'"))["messages"]
    assert house["verified"].sha256 == hex64
    assert (house["n_ctx"], house["threads"], house["parallel"], house["queue_limit"]) == (4096, None, None, 256)
    assert (house["listen"], house["engine"]) == (("127.0.0.1", 18093), ("127.0.0.1", 18092))


def test_every_option_arrives(house, capfd):
    words = [
        "--listen",
        "[::1]:7",
        "--upstream",
        "localhost:8",
        "--ctx",
        "512",
        "--threads",
        "2",
        "--fork",
        "m.gguf.FORK.json",
        "--slot-dir",
        ".",
        "--parallel",
        "7",
        "--queue",
        "9",
        "--kv-limit",
        "11",
    ]
    assert main(["serve", "m.gguf", "--native", *words]) == 0
    assert (house["n_ctx"], house["threads"], house["listen"], house["engine"]) == (
        512,
        2,
        ("::1", 7),
        ("localhost", 8),
    )
    assert (house["slot_dir"], house["parallel"], house["queue_limit"]) == (".", 7, 9)
    assert house["kv_limit"] == 11 << 20
    assert "http://[::1]:7/v1" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "registry", "keep_alive"),
    [
        ([], None, 300), (["--registry"], "forks", 300), (["--registry", "."], ".", 300),
        (["--keep-alive", "1h30m"], None, 5400), (["--keep-alive", "90"], None, 90), (["--keep-alive", "0"], None, 0),
        (["--keep-alive=-1"], None, math.inf),
    ],
)  # fmt: skip
def test_the_registry_and_how_long_models_stay(house, monkeypatch, words, registry, keep_alive):
    monkeypatch.setenv("BANKML_FORKS", "forks")
    assert main(["serve", "m.gguf", "--native", *words]) == 0
    assert (house["registry"], house["keep_alive"]) == (registry, keep_alive)


@pytest.mark.parametrize(
    ("words", "embeddings", "pooling", "longest"),
    [
        ([], False, None, None),
        (["--embedding", "--pooling", "cls", "-ub", "900"], True, "cls", 900),
        (["--pooling", "last", "--ubatch-size", "64"], False, "last", 64),
        (["--rerank"], True, "rank", None),
        (["--reranking", "--pooling", "rank", "--embeddings"], True, "rank", None),
    ],
)
def test_how_inputs_are_embedded(house, words, embeddings, pooling, longest):
    assert main(["serve", "m.gguf", "--native", *words]) == 0
    assert (house["embeddings"], house["pooling"], house["longest"]) == (embeddings, pooling, longest)


def test_the_demo_takes_the_same(house, monkeypatch):
    """The folder of the demo's model is a registry, which the demo itself may make."""

    def prepare(folder, say):
        (folder := Path(folder)).mkdir()
        for name in ("m.gguf", "m.gguf.FORK.json"):
            (folder / name).write_bytes(Path(name).read_bytes())
        return folder / "m.gguf", folder / "m.gguf.FORK.json"

    monkeypatch.setattr("bankml.convert.demo.prepare", prepare)
    assert main(["demo", "--dir", "made", "--registry", "made", "--keep-alive", "1m"]) == 0
    assert (house["registry"], house["keep_alive"]) == ("made", 60)
    assert main(["demo", "--dir", "more", "--keep-alive", "soon"]) == 1 and not Path("more").exists()
    assert main(["demo", "--dir", "more"]) == 0 and (house["registry"], house["keep_alive"]) == (None, 300)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--registry", "m.gguf"], "--registry m.gguf is not a folder"),
        (["--reranking", "--pooling", "mean"], "--reranking is --pooling rank, not mean: give one of them"),
        (["--keep-alive", "soon"], '--keep-alive: expected a duration such as "5m" or "1h30m", or a number of seconds'),
    ],
)
def test_what_they_cannot_be_is_told_before_the_file_is_hashed(house, capfd, words, error):
    assert main(["serve", "m.gguf", "--native", *words]) == 1
    assert capfd.readouterr().err.startswith(f"error: {error}") and house == {}


@pytest.mark.parametrize("words", [["--native"], ["--spawn", "/bin/true"], ["--native", "--upstream", "127.0.0.1:1"]])
def test_an_address_that_is_taken_is_told_before_the_file_is_hashed(house, tmp_path, monkeypatch, capfd, words):
    for name in ("verified_model", "model_to_open"):
        monkeypatch.setattr(f"bankml.cli.serve.{name}", lambda *_: pytest.fail("hashed"))
    monkeypatch.setattr("bankml.convert.demo.prepare", lambda *_: pytest.fail("fetched"))
    taken = [] if "--upstream" in words else ["--listen", "127.0.0.1:1"]
    assert main(["serve", "m.gguf", *words, *taken]) == 1
    assert capfd.readouterr().err == "error: cannot listen at 127.0.0.1:1: address already in use\n" and house == {}
    assert main(["demo", *(words[1:] if "--upstream" in words else taken)]) == 1


def test_a_slot_folder_that_is_none_is_told_before_the_file_is_hashed(house, capfd):
    assert main(["serve", "m.gguf", "--native", "--slot-dir", "m.gguf"]) == 1
    assert capfd.readouterr().err == "error: --slot-dir m.gguf is not a folder\n" and house == {}


def test_nothing_is_served_that_is_not_pinned_or_not_played(house, good, hex64, tmp_path, capfd):
    assert main(["serve", "m.gguf", "--native", "--ctx", "1"]) == 2
    assert capfd.readouterr().err == "refuse: m.gguf: weights are Q8_0\n"
    house.clear()
    (tmp_path / "m.gguf").write_bytes(good[:-1] + b"x")
    assert main(["serve", "m.gguf", "--native"]) == 2
    assert f"!= pinned {hex64}: refused" in capfd.readouterr().err and house == {}


def test_what_the_header_alone_shows_is_said_before_the_file_is_hashed(house, tmp_path, capfd):
    (tmp_path / "m.gguf").write_bytes(NOT_PLAYED)  # nor has it the sha256 that is pinned
    assert main(["serve", "m.gguf", "--native"]) == 2
    assert "unsupported model: tensor 'token_embd.weight' is missing" in capfd.readouterr().err and house == {}


MODES = {"--native": ["--native"], "--spawn": ["--spawn", "/bin/true"], "--upstream alone": ["--upstream=127.0.0.1:7"]}
ALL = tuple(MODES)
STARTED_HERE = ("--native", "--spawn")
OPTIONS = {  # a value that can be given, and the modes in which it has an effect
    "--fork": ("m.gguf.FORK.json", ALL),
    "--listen": ("127.0.0.1:8", ALL),
    "--upstream": ("127.0.0.1:9", ALL),
    "--ctx": ("4096", STARTED_HERE),
    "--threads": ("2", STARTED_HERE),
    "--slot-dir": (".", STARTED_HERE),
    "--registry": (".", ("--native",)),
    "--parallel": ("2", ("--native",)),
    "--queue": ("2", ("--native",)),
    "--kv-limit": ("100", ("--native",)),
    "--keep-alive": ("1h", ("--native",)),
    "--embeddings": (None, ("--native",)),
    "--pooling": ("mean", ("--native",)),
    "--rerank": (None, ("--native",)),
    "--ubatch-size": ("1024", ("--native",)),
    "--any-model": (None, ("--native",)),
    "--content-special": ("refuse", ("--native",)),
    "--reasoning": ("on", STARTED_HERE),
    "--slots-trust": (None, ("--native",)),
    "--spec-ngram": (None, ("--spawn",)),
    "--engine-log": ("log", ("--spawn",)),
    "--engine-mmap": (None, ("--spawn",)),
    "--allow-origin": ("http://localhost:3000", ALL),
    "--api-key": ("secret", ALL),
    "--api-key-file": ("keys", ALL),
    "--sign-key": ("sign.key", ALL),
    "--log": ("receipts", ALL),
    "--upstream-timeout": ("60", ("--spawn", "--upstream alone")),
}


def test_every_option_of_serve_is_in_the_table():
    said = build_parser().parse_args(["serve", "m.gguf"])
    known = {name.removeprefix("--").replace("-", "_") for name in OPTIONS}
    others = {"module", "function", "file", "native", "spawn", "allow_remote_origin"}
    others |= {"sign_passphrase_file", "sign_days", "log_sync", "log_optional"}
    assert set(vars(said)) - known == others, "which modes is it for?"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_without_effect_is_refused(house, monkeypatch, capfd, option, mode):
    monkeypatch.setattr("bankml.cli.proxy.run_in_front", lambda *_: 0)
    value, modes = OPTIONS[option]
    Path("keys").write_text("secret\n")
    generate("sign.key", None)
    code = main(["serve", "m.gguf", *MODES[mode], option, *([] if value is None else [value])])
    error = capfd.readouterr().err
    if mode in modes:
        assert code == 0, error
    else:
        assert code == 1 and house == {}, "nothing was begun"
        assert error == f"error: {option} has no effect with {mode}: it is for {' and '.join(modes)}\n"


@pytest.mark.parametrize("option", ["--ctx", "--threads"])
def test_a_zero_is_given_too(house, capfd, option):
    assert main(["serve", "m.gguf", "--upstream", "127.0.0.1:7", option, "0"]) == 1
    assert f"{option} has no effect" in capfd.readouterr().err


def test_what_a_registry_cannot_name_is_told(house, tmp_path, capfd):
    forks = tmp_path / "forks"
    forks.mkdir()
    (forks / "bad.FORK.json").write_text("{")
    assert main(["serve", "m.gguf", "--native", "--registry", str(forks)]) == 0
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("skipped: ")]
    assert len(told) == 1 and told[0].startswith("skipped: bad.FORK.json: ") and "not JSON" in told[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--api-key", "a key"), "an API key must be one or more visible ASCII characters without a space"),
        (("--api-key", ""), "an API key must be"),
        (("--api-key-file", "none"), "cannot read none: no such file"),
        (("--api-key-file", "empty"), "--api-key-file empty has no key: one a line is expected"),
    ],
)
def test_a_key_that_cannot_be_one(house, capfd, words, says):
    Path("empty").write_text("\n \n")
    assert main(["serve", "m.gguf", "--native", *words]) == 1 and house == {}
    assert says in capfd.readouterr().err
