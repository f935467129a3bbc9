"""Whatever ends a run, and however many workers it has: each line once, in order, and never the file in memory."""

import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.batch.entry import answer_line, read_entry
from bankml.batch.output import JOURNAL, JOURNAL_BYTES, locked_output
from bankml.batch.request import InputLine, read_line
from bankml.batch.run import BatchRun, resume, unfinished
from bankml.batch.supply import Supply
from bankml.batch.worker import WorkerLost
from bankml.errors import EngineFailed, Refused
from tests.batch.cases import chat, write_input


class Echo:
    """Answers with the request; `fails` says which call raises what."""

    def __init__(self, name="echo", width=2, fails=None):
        self.name, self.width = name, width
        self.fails = fails or (lambda n: None)
        self.answered = []
        self.lock = threading.Lock()

    def answer(self, request, cancelled):
        with self.lock:
            error = self.fails(len(self.answered))
            if error is None:
                self.answered.append(request.number)
        if error is not None:
            raise error
        return answer_line(request, 200, {"echo": request.custom_id})

    def resume(self, cancelled):
        pass

    def interrupt(self):
        pass

    def close(self):
        pass


class Killed(BaseException):
    pass


def ran(source, output, *workers, notes=None, window=4):
    """One run; gives the digest's root."""
    with locked_output(str(output)) as locked:
        resumed = resume(str(source), locked)
        if unfinished(resumed):
            BatchRun(resumed, locked, workers, (notes if notes is not None else []).append, window).run(lambda n: None)
        locked.complete()
        return resumed.digest.root


@pytest.fixture
def source(tmp_path):
    lines = [chat(i, messages=[{"role": "user", "content": "ba"[i % 2] + str(i % 5)}]) for i in range(23)]
    return write_input(tmp_path / "in.jsonl", [*lines[:9], "", "{broken", *lines[9:]])


def expected(source, tmp_path):
    whole = tmp_path / "whole.jsonl"
    return ran(source, whole, Echo()), whole.read_bytes()


def test_the_order_of_the_output_is_the_inputs(source, tmp_path):
    root, data = expected(source, tmp_path)
    entries = [json.loads(line) for line in data.splitlines()]
    assert [one["custom_id"] for one in entries] == [*(f"chat {i}" for i in range(9)), None] + [
        f"chat {i}" for i in range(9, 23)
    ]
    error = entries[9]["error"]
    assert error["line"] == 11 and error["message"].startswith("line 11: the line is not JSON")
    assert not (tmp_path / f"whole.jsonl{JOURNAL}").exists()
    one = tmp_path / "one.jsonl"
    assert ran(source, one, Echo(width=1), window=1000) == root and one.read_bytes() == data


@settings(max_examples=25, deadline=None)
@given(kills=st.lists(st.integers(0, 8), max_size=6), cuts=st.lists(st.integers(0, 40), min_size=6, max_size=6))
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path_factory, kills, cuts):
    """A kill ends the process after any answer, and leaves a part of the last line, in either file."""
    folder = tmp_path_factory.mktemp("killed")
    source = write_input(folder / "in.jsonl", [chat(i, seed=i % 3) for i in range(20)])
    root, data = expected(source, folder)
    output, computed = folder / "out.jsonl", []
    for kill, cut in zip(kills, cuts, strict=False):
        worker = Echo(width=1, fails=lambda n, kill=kill: Killed() if n >= kill else None)
        written = set()
        try:
            ran(source, output, worker)
        except Killed:
            written = _numbers(output) | _numbers(folder / f"out.jsonl{JOURNAL}")
        assert not set(worker.answered) & set(computed), "nothing that was written is computed again"
        computed += [number for number in worker.answered if not written or f"chat {number - 1}" in written]
        for path in (output, folder / f"out.jsonl{JOURNAL}"):
            if path.exists():
                path.write_bytes(path.read_bytes() + data[:cut].replace(b"\n", b""))
    worker = Echo()
    assert ran(source, output, worker) == root and output.read_bytes() == data
    assert not set(worker.answered) & set(computed)


def _numbers(path):
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return {read_entry(line).custom_id for line in lines}


def test_a_worker_that_is_lost_is_named_and_the_others_answer_for_it(source, tmp_path):
    root, data = expected(source, tmp_path)
    notes, output = [], tmp_path / "out.jsonl"
    bad = Echo("http://b", fails=lambda n: WorkerLost("lies") if n == 2 else None)
    assert ran(source, output, Echo("http://a"), bad, notes=notes) == root and output.read_bytes() == data
    assert notes in ([], ["dropped: http://b lies"])


def test_a_run_without_workers_says_why_and_goes_on_later(source, tmp_path):
    root, data = expected(source, tmp_path)
    output = tmp_path / "out.jsonl"
    with pytest.raises(EngineFailed, match="no worker is left: a is gone; b is gone; the same command continues"):
        ran(source, output, *(Echo(name, fails=lambda n: WorkerLost("is gone") if n > 2 else None) for name in "ab"))
    assert ran(source, output, Echo()) == root and output.read_bytes() == data


def test_another_input_another_output_and_a_second_writer_are_refused(source, tmp_path):
    output = tmp_path / "out.jsonl"
    ran(source, output, Echo())
    other = write_input(tmp_path / "other.jsonl", [chat(5)])
    with pytest.raises(Refused, match="line 1 belongs to another line"):
        ran(other, output, Echo())
    with pytest.raises(Refused, match=r"line 1 of .* is not a line of a batch's output"):
        ran(source, source, Echo())
    with locked_output(str(output)), pytest.raises(Refused, match="another process writes"):
        ran(source, output, Echo())


def test_two_windows_are_in_memory_at_most():
    """The first request is never answered: of a million lines the rest waits."""
    read = []

    def lines():
        for number in range(1, 1_000_001):
            read.append(number)
            yield InputLine(number, json.dumps(chat(0)).encode())

    supply = Supply(lines(), {}, lambda ready: None, window=10)
    taken = [supply.take() for _ in range(20)]
    assert len(read) == 20 and sorted(one.number for one in taken) == read
    waiting = threading.Thread(target=lambda: taken.append(supply.take()))
    waiting.start()
    for _ in range(19):
        supply.done()
    assert len(read) == 20
    supply.written(10)
    waiting.join()
    assert len(read) == 30


def test_requests_that_begin_alike_are_handed_out_together():
    lines = [chat(i, messages=[{"role": "user", "content": "xyz"[i % 3] * 9 + str(i)}]) for i in range(9)]
    sources = iter([InputLine(i + 1, json.dumps(line).encode()) for i, line in enumerate(lines)])
    supply = Supply(sources, {}, lambda ready: None)
    order = [supply.take().number for _ in range(9)]
    assert order == [1, 4, 7, 2, 5, 8, 3, 6, 9]


def test_a_journal_does_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("bankml.batch.output.JOURNAL_BYTES", 300)
    assert JOURNAL_BYTES > 300
    with locked_output(str(tmp_path / "out")) as output:
        for _ in range(20):
            output.keep(b"x" * 100)
            output.none_ahead()
        assert (tmp_path / f"out{JOURNAL}").stat().st_size <= 404


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "the line must be a JSON object, but it is an array"),
        ({"custom_id": "a", "url": "/v1/completions", "body": {}}, "Field 'method': expected \"POST\", not null"),
        ({"custom_id": 5, "method": "POST", "url": "/v1/completions", "body": {}}, "Field 'custom_id'"),
        ({"custom_id": "a", "method": "POST", "url": "/v1/images", "body": {}}, "Field 'url': expected one of"),
        (
            {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": []},
            "expected an object, not an array",
        ),
        (chat(0, stream=True), "Field 'stream': a batch has no streams"),
        (chat(0, n=2), "Field 'n': a line has one answer"),
        (chat(0, id_slot=1), "Field 'id_slot'"),
        (chat(0, verbose=True), "Field 'verbose'"),
    ],
)
def test_a_line_that_is_no_request_says_why(line, message):
    raw = (line if isinstance(line, str) else json.dumps(line)).encode()
    assert message in read_line(InputLine(3, raw)).message


def test_a_seed_is_that_of_the_request_or_a_function_of_it():
    def seed(**fields):
        return json.loads(read_line(InputLine(1, json.dumps(chat(1, **fields)).encode())).body)["seed"]

    assert seed(seed=7) == 7
    assert seed() == seed() and seed() != seed(temperature=2)
    assert 0 <= seed(seed=-1) < 2**32 - 1
