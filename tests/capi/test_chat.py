"""bankml_open and bankml_chat against `bankml serve --native`: the same refusals, answers and receipts."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from bankml.gate.verify import record
from bankml.gguf.block_types import BLOCK_TYPES
from bankml.gguf.writer import TensorSpec, writing
from bankml.receipt.check import check
from tests import oracle
from tests.end_to_end import tiny
from tests.end_to_end.servers import exchange, free_port, waiting

from .conftest import BANKML, ENVIRONMENT, start

CHAT = "/v1/chat/completions"


class Served:
    """A server on a model; `ask` gives the whole answer's body."""

    def __init__(self, path, fork, folder, n_ctx):
        self.port = free_port()
        where = ["--listen", f"127.0.0.1:{self.port}", "--upstream", f"127.0.0.1:{free_port()}", "--ctx", str(n_ctx)]
        with open(folder / "log", "wb") as log:
            command = [
                sys.executable,
                "-m",
                "bankml",
                "serve",
                str(path),
                "--fork",
                str(fork),
                "--native",
                "--parallel=1",
                *where,
            ]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **ENVIRONMENT})

    def __enter__(self):
        waiting(self.port, self.process)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def ask(self, request: bytes) -> bytes:
        return exchange(self.port, "POST", CHAT, request)[2]


def through_c(program, path, fork, requests, folder, n_ctx=0, stop_after=0):
    """[(code, pieces, result)] of the requests' bytes, asked in a fresh process on one handle."""
    files = []
    for i, request in enumerate(requests):
        files.append(folder / f"request-{i}")
        files[-1].write_bytes(request)
    done = start(program, path, fork, n_ctx, stop_after, *files)
    assert done.returncode == 0, done.stdout + done.stderr
    codes = [int(line) for line in done.stdout.splitlines()]
    return [
        (code, _pieces(file.with_suffix(".pieces").read_bytes()), file.with_suffix(".result").read_bytes())
        for code, file in zip(codes, files, strict=True)
    ]


def _pieces(framed: bytes) -> list[str]:
    """Each is a text by itself: a character cut in two would not decode."""
    pieces = []
    while framed:
        size, framed = framed.split(b"\n", 1)
        pieces.append(framed[: int(size)].decode())
        framed = framed[int(size) :]
    return pieces


def same(answer: bytes) -> dict:
    """What of an answer does not depend on when it was given."""
    value = json.loads(answer)
    if "error" in value:
        return {k: v for k, v in value["error"].items() if k not in ("code", "type")}
    receipt = {k: v for k, v in value["bankml_receipt"].items() if not k.endswith("_ms")}
    del receipt["replay"]["template"]  # when it was rendered, and the option --reasoning of serve
    return {"choices": value["choices"], "usage": value["usage"], "model": value["model"], "receipt": receipt,
            "cache_n": value["timings"]["cache_n"], "prompt_n": value["timings"]["prompt_n"]}  # fmt: skip


def turns() -> list[bytes]:
    """Two conversations that take turns, on one slot, and what one may ask for in them."""
    said, other = [], []
    requests = []
    for i, words in enumerate(("where is the rain", "on an iron roof", "été 🙂 ring the", "and then")):
        for talk, name in ((said, "a"), (other, "b")):
            talk += [{"role": "user", "content": f"{name} {words}"}]
            body = {"messages": list(talk), "max_tokens": 24, "seed": 10 * i + len(name), "temperature": 0.9}
            requests.append(json.dumps(body, ensure_ascii=False).encode())
            talk += [{"role": "assistant", "content": "the wind"}]
    one = [{"role": "user", "content": "the one"}]
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for extra in (
        {"logprobs": True, "top_logprobs": 3},
        {"stop": ["e", "in"], "logprobs": True},
        {"response_format": {"type": "json_object"}},
        {"json_schema": schema, "max_tokens": 40},
        {"json_schema": schema, "max_tokens": 1},
        {"grammar": "root ::= [é-ü日]+"},
        {"messages": [*one, {"role": "assistant", "content": "It is"}]},
        {"max_tokens": 3000},
        {"n": 2},
        {"mirostat": 3},
        {"messages": [{"role": "user", "content": "word " * 3000}]},
        {"json_schema": {"type": "frob"}},
    ):
        requests.append(json.dumps({"messages": one, "seed": 4, "max_tokens": 16, **extra}).encode())
    return requests


def compare(program, path, fork, requests, folder, n_ctx=1024):
    with Served(path, fork, folder, n_ctx) as served:
        wanted = [served.ask(request) for request in requests]
    for request, want, (code, pieces, result) in zip(
        requests, wanted, through_c(program, path, fork, requests, folder, n_ctx), strict=True
    ):
        assert same(result) == same(want), request
        if code != 0:
            assert code == -2 and json.loads(result)["error"]["code"] == -2
            continue
        assert "".join(pieces) == json.loads(result)["choices"][0]["message"]["content"]
        assert check(request, result).problems == ()
        receipt = json.loads(result)["bankml_receipt"]
        assert 0 < receipt["ttft_ms"] <= receipt["wall_ms"]


def test_every_answer_is_that_of_serve(compiled, words_model, tmp_path):
    compare(compiled("answers"), *words_model, turns(), tmp_path)


def test_characters_of_many_tokens_come_whole(compiled, bytes_model, tmp_path):
    compare(compiled("answers"), bytes_model.path, bytes_model.fork_path, turns(), tmp_path)


def test_stopping_ends_the_answer_with_what_was_given(compiled, words_model, tmp_path):
    """The pieces are a beginning of the whole answer, the receipt is of them, and the slot is as good as before."""
    request = json.dumps({"messages": [{"role": "user", "content": "the one"}], "seed": 4, "max_tokens": 40}).encode()
    program = compiled("answers")
    (_, all_pieces, _), *_ = through_c(program, *words_model, [request], tmp_path)
    first, second = through_c(program, *words_model, [request, request], tmp_path, stop_after=3)
    for code, pieces, result in (first, second):
        value = json.loads(result)
        assert code == 0 and pieces == all_pieces[:3] and check(request, result).problems == ()
        assert value["choices"][0]["finish_reason"] == "stop"
        assert value["choices"][0]["message"]["content"] == "".join(pieces)
        assert value["usage"]["completion_tokens"] < 40
    assert json.loads(second[2])["timings"]["cache_n"] > 0


def test_every_code(compiled, words_model, tmp_path):
    path = tmp_path / "changing.gguf"
    path.write_bytes(words_model[0].read_bytes())
    fork = tmp_path / "FORK.json"
    record(path, fork)
    done = start(compiled("codes"), path, fork, f"touch -d 2001-01-01 '{path}'")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, *lines = done.stdout.splitlines()
    assert first == "error: model_path and fork_json_path must both be given"
    assert second == "error: BANKML_CACHE_TYPE must be f16 or q8_0, not 'q9'"
    codes = [int(line.split(" ", 1)[0]) for line in lines]
    results = [json.loads(line.split(" ", 1)[1]) for line in lines]
    assert codes == [-1, -1, -1, -2, -2, -2, -2, -2, 0, -3]
    for code, result in zip(codes, results, strict=True):
        if code != 0:
            assert set(result) == {"error"} and set(result["error"]) == {"code", "message"}
            assert result["error"]["code"] == code
    assert results[8]["model"] == "changing" and results[8]["usage"]["completion_tokens"] <= 3
    assert results[9]["error"]["message"] == "changing.gguf changed since it was verified"


@pytest.mark.parametrize(("asked", "given"), [(0, 4096), (1, 256), (300, 512), (1 << 24, 8192)])
def test_contexts_are_serves(compiled, bytes_model, tmp_path, asked, given):
    """4096 when none is asked for, whole steps of 256, and no more than the model was trained on."""
    request = json.dumps({"messages": [{"role": "user", "content": "a" * 9000}]}).encode()
    ((code, _, result),) = through_c(
        compiled("answers"), bytes_model.path, bytes_model.fork_path, [request], tmp_path, asked
    )
    error = json.loads(result)["error"]
    assert code == -2 and error["n_ctx"] == given and error["n_prompt_tokens"] > 9000


def nvfp4(folder):
    """A model of a weight type that is not supported."""
    path, fork = folder / "Tiny-NVFP4.gguf", folder / "FORK.json"
    kind = next(one for one in tiny.MODELS if one.name == "tiny-llama-f16")
    specs = [TensorSpec(*tensor) for tensor in tiny.tensors(replace(kind, type=BLOCK_TYPES[40]))]
    with writing(path, tiny.entries(kind), specs) as out:
        for spec in specs:
            out.write(bytes(spec.type.nbytes(math.prod(spec.shape))))
    record(path, fork)
    return path, fork


def unpinned(folder):
    path, fork = nvfp4(folder)
    return path.rename(folder / "X.gguf"), fork


def cut_short(folder):
    path, fork = nvfp4(folder)
    path.write_bytes(path.read_bytes()[:100])
    return path, fork


def another(folder):
    path, fork = nvfp4(folder)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    return path, fork


def absent(folder):
    return folder / "no such\nmodel.gguf", folder / "FORK.json"


def no_record(folder):
    return nvfp4(folder)[0], folder / "none.json"


@pytest.mark.parametrize("broken", [nvfp4, unpinned, cut_short, another, absent, no_record])
def test_the_reason_is_in_serves_words(compiled, tmp_path, broken):
    path, fork = broken(tmp_path)
    done = start(compiled("answers"), path, fork, 0, 0)
    served = start(BANKML, "serve", path, "--fork", fork, "--native")
    assert done.returncode == 2 and done.stdout == served.stderr.splitlines(keepends=True)[-1]
    assert done.stdout.startswith(("refuse: ", "need_more: ", "error: "))
    assert done.stderr == f"bankml: error: {done.stdout.removeprefix('error: ')}"


def test_the_contract_names_two_refusals(compiled, tmp_path):
    path, fork = nvfp4(tmp_path)
    said = start(compiled("answers"), path, fork, 0, 0).stdout
    assert said.startswith("refuse: Tiny-NVFP4.gguf: unsupported weight type NVFP4 (supported: F32, F16, ")
    path = path.rename(tmp_path / "X.gguf")
    said = start(compiled("answers"), path, fork, 0, 0).stdout
    assert said == "refuse: X.gguf has no sha256 record in FORK.json: unpinned, refused\n"


@pytest.mark.parametrize(
    ("n_ctx", "environment", "said"),
    [
        ((1 << 24) + 1, {}, "error: the context must be 1 to 16777216 tokens, not 16777217\n"),
        (0, {"BANKML_THREADS": "none"}, "error: BANKML_THREADS must be a whole number from 1 to 256, not 'none'\n"),
        (0, {"BANKML_CACHE_TYPE": "q4_0"}, "error: BANKML_CACHE_TYPE must be f16 or q8_0, not 'q4_0'\n"),
        (0, {"BANKML_CACHE_RAM": "x"}, None),
        (0, {"BANKML_LLAMA_THREADS": "0"}, None),
    ],
)
def test_what_opens_no_handle(compiled, words_model, n_ctx, environment, said):
    done = start(compiled("answers"), *words_model, n_ctx, 0, **environment)
    assert done.returncode == 2 and done.stdout.startswith("error: ")
    if said is not None:
        assert done.stdout == said


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["SmolLM2-135M-Instruct-F16.gguf", "Qw-tiny-Q1_0.gguf"])
def test_conversations_on_real_models(compiled, tmp_path, name):
    """As above, on models that say something: turn by turn, two conversations on one slot."""
    path = oracle.model(name)
    compare(compiled("answers"), path, f"{path}.FORK.json", turns(), tmp_path, n_ctx=2048)
