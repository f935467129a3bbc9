"""Batches computed by this process: the same bytes whatever was computed beside, before, or until a kill."""

import functools
import json
import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bankml.batch.digest import BatchDigest, DigestFile
from bankml.batch.entry import read_entry
from bankml.batch.local import LocalWorker, batch_library
from bankml.batch.output import DIGEST, JOURNAL
from bankml.batch.request import TEXT, InputLine, read_line
from bankml.cli import main
from bankml.gate.verify import record, verify
from bankml.library.load import LoadOptions
from bankml.receipt.check import check
from bankml.receipt.raw import raw_value
from bankml.replay.opening import open_for
from bankml.replay.replay import read_evidence, replay
from bankml.signing.keys import PublicKey, generate
from tests.batch.cases import SYSTEM, chat, command, requests, started, write_input
from tests.tiny_architectures import tiny_architecture
from tests.tiny_model import entries, tiny_model

SCHEMA = Draft202012Validator(json.loads((Path(__file__).parents[2] / "docs/receipt.schema.json").read_text()))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("batch"))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_input(tmp_path_factory.mktemp("input") / "in.jsonl", requests(33))


@pytest.fixture(scope="module")
def whole(source, model, tmp_path_factory):
    """The output of one process that computes one answer at a time."""
    output = tmp_path_factory.mktemp("whole") / "out.jsonl"
    assert main(command(source, output, "--parallel", 1, model=model.path)) == 2, "there are bad lines"
    return output


def both(output):
    return output.read_bytes(), (output.parent / f"{output.name}{DIGEST}").read_bytes()


def again(verified):
    return verify(verified.path, verified.fork_path)


def worker(verified, parallel=4, n_ctx=1024, **options):
    options = {"environment": {"BANKML_THREADS": "1"}, "embeddings": True, "pooling": "last"} | options
    return LocalWorker(batch_library(again(verified), LoadOptions(n_ctx, parallel=parallel, **options), 1e9))


def read(lines):
    return [read_line(InputLine(i + 1, json.dumps(line).encode())) for i, line in enumerate(lines)]


def test_several_answers_at_once_change_no_byte(source, model, whole, tmp_path, capfd):
    output = tmp_path / "out.jsonl"
    assert main(command(source, output, "--parallel", 8, model=model.path)) == 2
    assert both(output) == both(whole)
    digest = json.loads(both(output)[1])
    printed = capfd.readouterr()
    assert printed.out == f"digest: {digest['root']} over 33 requests, models {model.sha256}\n"
    assert digest["errors"] == 3 and "3 of 33 requests have an error" in printed.err


def test_every_answer_has_a_receipt_that_fits_and_replays(source, whole, model):
    asked = [read_line(InputLine(i + 1, line.encode())) for i, line in enumerate(source.read_text().splitlines())]
    replayed = 0
    for request, line in zip(asked, whole.read_text().splitlines(), strict=True):
        if json.loads(line)["error"] is not None:
            continue
        answer = raw_value(line, ("response", "body")).encode()
        assert check(request.body, answer).ok, line
        SCHEMA.validate(json.loads(answer)["bankml_receipt"])
        if "embeddings" not in request.url and request.number % 3 == 0:
            evidence = read_evidence(request.body, answer)
            assert replay(evidence, open_for(evidence.record, again(model))).ok
            replayed += 1
    assert replayed > 6


def test_each_answer_is_the_one_that_its_request_gets_alone(model):
    asked = [one for one in read(requests(22)) if hasattr(one, "body")]
    together = worker(model)
    for request in random.Random(3).sample(asked, len(asked)):
        line = together.answer(request, lambda: False)
        assert line == worker(model, parallel=1).answer(request, lambda: False)


@settings(max_examples=12, deadline=None)
@given(
    asked=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 511, 512, 513, 1024, 1030]),  # tokens that it has in common with all others
            st.sampled_from([1, 2, 511, 512, 513, 1023, 1024, 1025, 1100]),  # its length
        ),
        min_size=2,
        max_size=6,
    )
)
def test_prompts_around_the_edges_of_micro_batches(workers, asked):
    """Whatever they share, and however long they are: each answer, receipt and trace is that of an empty cache."""
    together, alone = workers
    prompts = [([7] * shared + [20 + i] * length)[:length] for i, (shared, length) in enumerate(asked)]
    bodies = [{"prompt": prompt, "max_tokens": 3, "logit_bias": [[256, False]]} for prompt in prompts]
    for request in read([{"custom_id": "a", "method": "POST", "url": TEXT, "body": body} for body in bodies]):
        alone._library.resident.engine.slots[0].clear()
        assert together.answer(request, lambda: False) == alone.answer(request, lambda: False)


@pytest.fixture(scope="module")
def workers(model):
    return worker(model, parallel=3, n_ctx=2048), worker(model, parallel=1, n_ctx=2048)


@pytest.mark.parametrize("name", ["gemma3", "qwen3moe"])
def test_other_architectures(tmp_path, name):
    """A sliding window shares no prefix, and its answers are those of an empty cache too."""
    verified = tiny_architecture(tmp_path, name)
    asked = read([chat(0), chat(3), chat(0, seed=4)])
    together = worker(verified, parallel=2, embeddings=False)
    for request in asked:
        alone = worker(verified, parallel=1, embeddings=False)
        assert together.answer(request, lambda: False) == alone.answer(request, lambda: False)


def test_killed_at_any_moment_and_run_again(source, model, whole, tmp_path):
    output, rng = tmp_path / "out.jsonl", random.Random(7)
    for _ in range(2):
        size = output.stat().st_size if output.exists() else 0
        process = started(*command(source, output, "--parallel", 4, model=model.path))
        while process.poll() is None and (not output.exists() or output.stat().st_size <= size + rng.randint(0, 3000)):
            time.sleep(0.001)
        process.kill()
        process.communicate()
    assert main(command(source, output, "--parallel", 2, model=model.path)) == 2
    assert both(output) == both(whole)
    assert not (tmp_path / f"out.jsonl{JOURNAL}").exists()


def test_a_finished_batch_computes_nothing_again(source, model, whole, monkeypatch):
    monkeypatch.setattr("bankml.cli.batch.model_to_open", None)
    before = both(whole)
    assert main(command(source, whole, model=model.path)) == 2
    assert both(whole) == before


def test_ctrl_c_ends_it_and_another_model_does_not_go_on(source, model, whole, tmp_path, capfd):
    output = tmp_path / "out.jsonl"
    process = started(*command(source, output, "--parallel", 1, model=model.path))
    while process.poll() is None and (not output.exists() or output.stat().st_size == 0):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    folder = tmp_path / "other"
    folder.mkdir()
    other = tiny_model(folder, seed=2)
    assert main(command(source, output, model=other.path)) == 2
    assert f"model_sha256 is {model.sha256}, not {other.sha256}" in capfd.readouterr().err
    assert main(command(source, output, "--ctx", "512", model=model.path)) == 2
    assert "arithmetic is Arithmetic(n_ctx=1024" in capfd.readouterr().err
    assert main(command(source, output, "--reasoning", "off", model=model.path)) == 2
    assert "template is TemplateUse(" in capfd.readouterr().err
    assert main(command(source, output, model=model.path)) == 2
    assert both(output) == both(whole)


def test_a_prefix_is_computed_once(model):
    """Eight requests at the same time: of the prefix that they share, each micro-batch is computed by one of them."""
    asked = read([chat(0, messages=[{"role": "user", "content": SYSTEM + SYSTEM[:520] + str(i)}]) for i in range(8)])
    assert len({request.number for request in asked}) == 8
    shared = worker(model, parallel=8, n_ctx=2048)
    engine, counted = shared._library.resident.engine, []
    forward = engine.model.forward
    engine.model.forward = lambda spans, *rest: counted.append(len(spans[0].tokens)) or forward(spans, *rest)
    threads = [threading.Thread(target=shared.answer, args=(one, lambda: False)) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted.count(512) == 2, "two micro-batches of 512 are in all eight prompts"
    assert sum(one for one in counted if 1 < one < 512) < 8 * 120


def test_a_template_that_shows_the_date_has_one_moment(tmp_path, monkeypatch):
    """A run that goes on another day sees the day on which the first one began."""
    monkeypatch.setattr("tests.tiny_model.entries", functools.partial(entries, template="{{ strftime_now('%Y') }}:"))
    model = tiny_model(tmp_path)
    source = write_input(tmp_path / "in.jsonl", [chat(i) for i in range(3)])
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    for output, moments in ((whole, [1e9]), (part, [1e9, 1.5e9])):
        for moment in moments:
            monkeypatch.setattr("bankml.cli.batch.time.time", lambda moment=moment: moment)
            assert main(command(source, output, model=model.path)) == 0
            if moment != moments[-1]:
                output.write_bytes(output.read_bytes().splitlines(keepends=True)[0] + b"torn")
    assert both(part) == both(whole) and b'"rendered_at": 1000000000.0' in whole.read_bytes()


def test_lines_that_name_their_models(tmp_path):
    """Of a folder of records; the model is switched twice at most, whatever the order of the lines."""
    for name, seed in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        made = tiny_model(tmp_path / name, seed=seed)
        os.rename(made.path, tmp_path / f"{name}.gguf")
        record(tmp_path / f"{name}.gguf", tmp_path / "FORK.json")
    lines = [chat(i, model=("one", "two", "three")[i % 3]) for i in range(9)]
    source, output = write_input(tmp_path / "in.jsonl", lines), tmp_path / "out.jsonl"
    assert main(["batch", str(source), "-o", str(output), "--registry", str(tmp_path), "--quiet"]) == 2
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert [one["response"]["status_code"] for one in found] == [200, 200, 404] * 3
    assert "line 3: unknown model 'three'" in found[2]["error"]["message"]
    models = json.loads(both(output)[1])["models"]
    assert len(models) == 2 and {one["response"]["body"].get("model") for one in found} == {"one", "two", None}
    again = tmp_path / "again.jsonl"
    assert main(["batch", str(source), "-o", str(again), "--registry", str(tmp_path), "--parallel", "1"]) == 2
    assert both(again) == both(output)


def test_the_digest_is_signed_and_covers_every_line(source, model, whole, tmp_path):
    files = generate(str(tmp_path / "key"), None)
    output = tmp_path / "out.jsonl"
    shutil.copy(whole, output)  # what is finished is only signed
    assert main(command(source, output, "--sign-key", files.private, model=model.path)) == 2
    assert output.read_bytes() == whole.read_bytes()
    found = DigestFile.of(json.loads(both(output)[1]))

    def digest(lines):
        made = BatchDigest()
        for line in lines:
            made.add(read_entry(line))
        return made

    lines = whole.read_bytes().splitlines()
    found.require(digest(lines), PublicKey.read(files.public))
    with pytest.raises(ValueError, match="not signed"):
        DigestFile.of(json.loads(both(whole)[1])).require(digest(lines), PublicKey.read(files.public))
    for changed in (
        [lines[1], lines[0], *lines[2:]],
        lines[:-1],
        [lines[0].replace(b'"created": 0', b'"created": 1'), *lines[1:]],
    ):
        with pytest.raises(ValueError, match="its root is"):
            found.require(digest(changed), None)


def test_mistakes_of_the_command_line(source, tmp_path, capfd):
    for words, message in [
        ([], "name the file of the answers with -o"),
        (["-o", "x"], "name the model's file with --model"),
        (["-o", "x", "--model", "m", "--sign-passphrase-file", "p"], "has no effect without --sign-key"),
        (["-o", str(tmp_path), "--model", "m"], "is not a regular file"),
    ]:
        assert main(["batch", str(source), *words]) == 1
        assert message in capfd.readouterr().err
    assert main(["batch", str(tmp_path / "none"), "-o", "x", "--model", "m"]) == 1
    assert "cannot read" in capfd.readouterr().err and not os.path.exists("x")
