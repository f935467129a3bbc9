"""Many answers at once: each is the one that its request gets alone, whatever else runs, comes or is cancelled."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.engine.active import OUTPUT_LIMIT
from bankml.engine.completion import MICRO_BATCH, Job
from bankml.engine.engine import Engine
from bankml.engine.prompt_cache import PromptCache
from bankml.engine.several import PromptChoices, complete_several
from bankml.errors import Cancelled
from tests.engine.cell_toys import CellModel
from tests.engine.engine_toys import ByteVocabulary, GreedySampler, ToyModel, ToyPieces


def answered(engine, job, cancelled=lambda: False):
    return [step.token for step in engine.complete(job, GreedySampler(), ToyPieces(), cancelled=cancelled)]


def alone(job):
    engine = Engine(ToyModel(), ByteVocabulary())
    try:
        return answered(engine, Job(job.prompt, job.max_tokens))
    finally:
        engine.close()


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class CountingModel(CellModel):
    """`calls` counts the forward passes; each calls its checkpoint a few times, as between operations."""

    calls = 0

    def forward(self, spans, logits, checkpoint=lambda: None):
        self.calls += 1
        for _ in range(3 if len(spans[0].tokens) > 1 else 0):
            time.sleep(0.0005)
            checkpoint()
        return super().forward(spans, logits)


class Crowd:
    """Requests in threads of their own; `answers[i]` is the i-th one's tokens, or the error that ended it."""

    def __init__(self, engine):
        self.engine = engine
        self.answers = {}
        self._threads = []

    def ask(self, job, cancelled=lambda: False, after=0.0):
        number = len(self._threads)

        def work():
            time.sleep(after)
            try:
                self.answers[number] = answered(self.engine, job, cancelled)
            except BaseException as error:
                self.answers[number] = error

        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()

    def wait(self):
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()
        return [self.answers[number] for number in range(len(self._threads))]


requests = st.tuples(
    st.binary(min_size=1, max_size=12).map(lambda raw: bytes(65 + byte % 2 for byte in raw)),
    st.integers(0, 3),  # micro-batches more
    st.integers(1, 12),  # tokens
    st.booleans(),  # prefixes are reused
    st.sampled_from([0.0, 0.0, 0.002, 0.005]),  # seconds until it comes
    st.sampled_from([None, None, None, 0, 1, 5]),  # model calls after which it is cancelled
)


@settings(max_examples=40, deadline=None)
@given(st.lists(requests, min_size=1, max_size=8), st.integers(1, 4), st.booleans())
def test_every_answer_is_the_one_that_it_is_alone(several, parallel, cache):
    model = CountingModel()
    engine = Engine(model, ByteVocabulary(), parallel, PromptCache(None, 4096) if cache else None)
    crowd, jobs = Crowd(engine), []
    for head, more, tokens, reuse, after, calls in several:
        prompt = list(head) + [65 + i % 3 for i in range(more * MICRO_BATCH // 2)]
        jobs.append(Job(prompt, tokens, reuse))
        end = None if calls is None else model.calls + calls
        crowd.ask(jobs[-1], lambda end=end: end is not None and model.calls >= end, after)
    answers = crowd.wait()
    for slot in (engine.slots[number] for number in range(parallel)):
        assert slot.tokens == slot.cells.held(len(slot))
    engine.close()
    for job, answer, (*_, calls) in zip(jobs, answers, several, strict=True):
        if isinstance(answer, BaseException):
            assert isinstance(answer, Cancelled) and calls is not None
        else:
            assert answer == alone(job)


def test_answers_that_decode_are_computed_together():
    model, started = ToyModel(), threading.Event()
    model.before = lambda: started.wait(10)
    engine = Engine(model, ByteVocabulary(), 4)
    crowd = Crowd(engine)
    for letter in b"abcd":
        crowd.ask(Job([letter] * 3, 50))
    wait_until(lambda: engine.scheduler.running == 4)
    started.set()
    crowd.wait()
    engine.close()
    assert max(model.together) == 4 and model.together.count(4) > 30
    assert engine.scheduler.batch_sizes[4] == model.together.count(4)


def test_others_go_on_while_a_prompt_is_computed():
    """The forward pass of a prompt calls its checkpoint several times, and the others get a token each time."""
    model = ToyModel()
    engine = Engine(model, ByteVocabulary(), 2)
    seen, plain = [], model.forward

    def forward(spans, logits, checkpoint=lambda: None):
        if len(spans[0].tokens) > 100:
            for _ in range(10):
                time.sleep(0.002)
                checkpoint()
            seen.append(sum(1 for _, n, _ in model.calls if n == 1))
        return plain(spans, logits, checkpoint)

    model.forward = forward
    crowd = Crowd(engine)
    crowd.ask(Job(b"short", 4000))
    wait_until(lambda: len(model.calls) > 3)
    crowd.ask(Job([65] * 2000, 1), after=0.0)
    wait_until(lambda: 1 in crowd.answers)
    assert crowd.answers[1] == alone(Job([65] * 2000, 1))
    assert seen[-1] - seen[0] >= 10
    crowd.wait()
    engine.close()


def test_a_consumer_that_does_not_read_pauses_its_own_answer_only():
    model = ToyModel()
    engine = Engine(model, ByteVocabulary(), 2)
    slow = engine.complete(Job(b"slow", 1000), GreedySampler(), ToyPieces())
    first = next(slow)
    wait_until(lambda: len(engine.slots[1]) + len(engine.slots[0]) > OUTPUT_LIMIT // 2)
    assert answered(engine, Job(b"quick", 500)) == alone(Job(b"quick", 500))
    paused = sum(1 for _, n, _ in model.calls if n == 1)
    assert paused < 500 + 2 * OUTPUT_LIMIT
    rest = [first.token, *(step.token for step in slow)]
    assert rest == alone(Job(b"slow", 1000))
    engine.close()


def test_an_error_ends_the_answers_that_it_hit_and_no_others():
    model = ToyModel()
    engine = Engine(model, ByteVocabulary(), 2)

    def fail():
        raise MemoryError

    model.before = fail
    with pytest.raises(MemoryError):
        answered(engine, Job(b"abc", 4))
    model.before = lambda: None
    assert answered(engine, Job(b"abc", 4)) == alone(Job(b"abc", 4))
    engine.close()


def test_a_slot_that_is_asked_for_is_waited_for():
    engine = Engine(ToyModel(), ByteVocabulary(), 2)
    with engine.slots.of_number(1, lambda: False):
        crowd = Crowd(engine)
        crowd.ask(Job(b"abc", 3, slot=1))
        crowd.ask(Job(b"abc", 3))
        wait_until(lambda: 1 in crowd.answers)
        assert 0 not in crowd.answers
        waits = []
        with pytest.raises(Cancelled):
            answered(engine, Job(b"x", 1, slot=1), cancelled=lambda: waits.append(1) or len(waits) > 1)
    assert crowd.wait() == [alone(Job(b"abc", 3))] * 2
    engine.close()


def test_which_slot_a_prompt_takes():
    """The one with the longest common prefix, if that is over a tenth of the prompt, else the least recently used."""
    engine = Engine(ToyModel(), ByteVocabulary(), 3)

    def used(prompt):
        return list(engine.complete(Job(prompt, 1), GreedySampler(), ToyPieces()))[-1].progress.slot

    assert [used(b"aaaa"), used(b"bbbb"), used(b"cccc")] == [2, 1, 0]
    assert used(b"bbbbbb") == 1 and used(b"aaax") == 2
    assert used(b"zzzz") == 0
    assert used(b"b" + bytes(9)) == 1, "a tenth is not more than a tenth, but it is the least recently used"
    engine.close()


def test_closing_cancels_what_runs():
    engine = Engine(ToyModel(), ByteVocabulary())
    crowd = Crowd(engine)
    crowd.ask(Job(b"abc", 10**6))
    wait_until(lambda: engine.scheduler.running == 1)
    engine.scheduler.close()
    assert isinstance(crowd.wait()[0], Cancelled)


# ---- several answers for one request


class PickyModel(CellModel):
    """Its logits are equal for three letters, so that a sampler decides; they depend on the context too."""

    def forward(self, spans, logits, checkpoint=lambda: None):
        found = super().forward(spans, logits)
        if logits:
            for row in found:
                row[(int(row.argmax()) + 1) % 97 + 1] = 1.5
        return found


class Alternating(GreedySampler):
    """Draws the best token, or where `number` says so another one that depends on it."""

    def __init__(self, number):
        super().__init__()
        self._number = number

    def sample(self, logits):
        best = super().sample(logits)
        return 97 + (best + self._number * len(self.accepted)) % 26


def alone_with(job, number):
    engine = Engine(PickyModel(), ByteVocabulary())
    try:
        return [step.token for step in engine.complete(job, Alternating(number), ToyPieces())]
    finally:
        engine.close()


prompts = st.lists(
    st.tuples(st.integers(1, 600), st.integers(1, 3), st.integers(1, 8)), min_size=1, max_size=5
)  # tokens of the prompt, answers, tokens of an answer


@settings(max_examples=30, deadline=None)
@given(prompts, st.integers(3, 4), st.booleans())
def test_each_of_several_answers_is_the_one_that_it_is_alone(several, parallel, reuse):
    engine = Engine(PickyModel(), ByteVocabulary(), parallel, PromptCache(None, 4096))
    asked, expected = [], []
    for n, answers, tokens in several:
        job = Job([65 + i % 7 for i in range(n)], tokens, reuse)
        asked.append(PromptChoices(job, [(Alternating(i), ToyPieces()) for i in range(answers)]))
        expected += [alone_with(Job(job.prompt, tokens), i) for i in range(answers)]
    found = [[] for _ in expected]
    steps = complete_several(engine, asked, parallel, cancelled=lambda: False, progress=lambda progress: None)
    for index, step in steps:
        found[index].append(step.token)
    assert found == expected
    assert not any(engine.slots.busy(number) for number in range(parallel))
    engine.close()


def test_several_answers_end_together_when_one_is_cancelled():
    engine, seen = Engine(ToyModel(), ByteVocabulary(), 2), []
    asked = [PromptChoices(Job(b"abc", 4000), [(GreedySampler(), ToyPieces())])] * 3
    with pytest.raises(Cancelled):
        for index, _ in complete_several(
            engine, asked, 2, cancelled=lambda: len(seen) > 100, progress=lambda progress: None
        ):
            seen.append(index)
    assert set(seen) == {0, 1} and not engine.slots.busy(0) and not engine.slots.busy(1)
    assert answered(engine, Job(b"abc", 3)) == alone(Job(b"abc", 3))
    engine.close()
