import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.engine.queue import AdmissionQueue
from bankml.engine.slot import Slot, common_prefix
from bankml.errors import Busy, Cancelled
from tests.engine.engine_toys import ToyCells

tokens = st.lists(st.integers(0, 2), max_size=12)


@given(tokens, tokens)
def test_common_prefix(a, b):
    n = common_prefix(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]


@given(tokens, tokens.filter(bool), st.booleans())
def test_begin_keeps_a_prefix_and_leaves_something_to_compute(held, prompt, reuse):
    slot = Slot(ToyCells())
    slot.extend(held)
    kept = slot.begin(prompt, reuse)
    assert kept < len(prompt)
    assert slot.tokens == tuple(prompt[:kept]) == tuple(held[:kept])
    assert kept == (min(common_prefix(held, prompt), len(prompt) - 1) if reuse else 0)


def wait_until(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_turns_come_in_order():
    queue, order, threads = AdmissionQueue(), [], []

    def work(i):
        with queue.turn(lambda: False):
            order.append(i)

    with queue.turn(lambda: False):
        for i in range(12):
            threads.append(threading.Thread(target=work, args=(i,)))
            threads[-1].start()
            wait_until(lambda i=i: queue.waiting == i + 1)
        assert order == []
    for thread in threads:
        thread.join(5)
    assert order == list(range(12))


def test_one_at_a_time():
    queue, inside, worst = AdmissionQueue(), [], []

    def work():
        for _ in range(20):
            with queue.turn(lambda: False):
                inside.append(1)
                worst.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(worst) == 120 and max(worst) == 1


def test_who_leaves_gives_up_the_place():
    queue, got = AdmissionQueue(), []

    def leave():
        with pytest.raises(Cancelled), queue.turn(lambda: True):
            got.append("left")

    def stay():
        with queue.turn(lambda: False):
            got.append("stayed")

    with queue.turn(lambda: False):
        threads = [threading.Thread(target=leave), threading.Thread(target=stay)]
        for thread in threads:
            thread.start()
        threads[0].join(5)
        wait_until(lambda: queue.waiting == 1)
    threads[1].join(5)
    assert got == ["stayed"] and queue.waiting == 0


def test_a_turn_that_fails_passes_the_turn_on():
    queue = AdmissionQueue()
    with pytest.raises(ValueError, match="broken"), queue.turn(lambda: False):
        raise ValueError("broken")
    with queue.turn(lambda: False):
        pass


def entered(queue, key, log, until):
    """A thread that enters with `key` and stays until `until` is set."""

    def work():
        with queue.turn(lambda: False, key):
            log.append(key)
            until.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_those_of_one_key_enter_together_up_to_the_limit():
    queue, log, done = AdmissionQueue(3), [], threading.Event()
    threads = [entered(queue, "a", log, done) for _ in range(5)]
    wait_until(lambda: queue.waiting == 2 and log == ["a"] * 3)
    assert queue.inside == 3
    done.set()
    for thread in threads:
        thread.join(5)
    assert log == ["a"] * 5 and (queue.inside, queue.waiting) == (0, 0)


def test_nobody_overtakes_one_with_another_key():
    queue, log, first, rest = AdmissionQueue(4), [], threading.Event(), threading.Event()
    rest.set()
    threads = [entered(queue, "a", log, first)]
    wait_until(lambda: log == ["a"])
    for key in ("b", "a", None, "a"):
        threads.append(entered(queue, key, log, rest))
        wait_until(lambda: queue.waiting == len(threads) - 1)
    assert log == ["a"]
    first.set()
    for thread in threads:
        thread.join(5)
    assert log == ["a", "b", "a", None, "a"]


def test_one_without_a_key_is_alone():
    queue, log, done = AdmissionQueue(4), [], threading.Event()
    with queue.turn(lambda: False):
        thread = entered(queue, "a", log, done)
        wait_until(lambda: queue.waiting == 1)
        assert log == [] and queue.inside == 1
    done.set()
    thread.join(5)
    assert log == ["a"]


def test_a_full_queue_is_busy():
    queue, log, done = AdmissionQueue(1, limit=1), [], threading.Event()
    threads = [entered(queue, "a", log, done)]
    wait_until(lambda: log == ["a"])
    threads.append(entered(queue, "a", log, done))
    wait_until(lambda: queue.waiting == 1)
    with pytest.raises(Busy, match="the queue is full"), queue.turn(lambda: False, "a"):
        pass
    done.set()
    for thread in threads:
        thread.join(5)
    assert log == ["a", "a"] and queue.waiting == 0
