"""A look at real processes, and one look shared by many."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from bankml.errors import UsageError
from bankml.measure.sampler import SharedSample
from bankml.measure.usage import Watched, measure, watch


@pytest.fixture
def program():
    """Starts Python programs that say when they run; ends them all."""
    started = []

    def start(code):
        process = subprocess.Popen([sys.executable, "-c", f"print('up', flush=True)\n{code}"], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_busy_process_an_idle_one_and_one_that_has_ended(program):
    busy = program("while True: pass")
    idle = program("held = bytearray(b'x') * (64 << 20)\nimport time; time.sleep(60)")
    ended = program("")
    ended.wait()
    names = [Watched("busy", busy.pid), Watched("idle", idle.pid), Watched("ended", ended.pid)]
    for _ in range(20):  # on a busy machine a process may not get its turn within one look
        usage = measure(names, 0.3)
        found = {each.name: each for each in usage.processes}
        if found["busy"].cpu_percent > found["idle"].cpu_percent:
            break
    assert found["busy"].cpu_percent > found["idle"].cpu_percent and usage.cpu_percent > 0
    assert found["idle"].rss_bytes > 64 << 20
    assert (found["ended"].rss_bytes, found["ended"].cpu_percent) == (None, None)
    assert usage.interval_ms >= 300 and usage.cores == os.cpu_count()
    assert 0 < usage.memory_available_bytes <= usage.memory_total_bytes


def test_a_process_that_ends_during_the_look(program):
    process = program("import time; time.sleep(60)")
    threading.Timer(0.05, process.kill).start()
    assert measure([Watched("brief", process.pid)], 0.3).processes[0].rss_bytes is None


def test_what_is_told_is_json_that_names_every_unit():
    told = json.loads(json.dumps(measure(watch([os.getpid()]), 0.0).as_json()))
    assert list(told) == [
        "time", "interval_ms", "cores", "cpu_percent", "memory", "swap", "processes", "package_watts", "gpus",
        "gpu_limiter",
    ]  # fmt: skip
    assert told["processes"][0]["pid"] == os.getpid() and told["processes"][0]["name"]
    memory = told["memory"]
    assert memory["used_bytes"] + memory["available_bytes"] == memory["total_bytes"]


@pytest.mark.parametrize("pid", [2**22 + 7, -1, 2**70])
def test_a_process_that_is_not_there(pid):
    with pytest.raises(UsageError, match=f"no process {pid}"):
        watch([os.getpid(), pid])


class Takes:
    """Samples that take as long as the test lets them."""

    def __init__(self):
        self.begun, self.go, self.count = threading.Event(), threading.Event(), 0

    def __call__(self):
        self.count += 1
        self.begun.set()
        assert self.go.wait(10)
        if self.count == 2:
            raise RuntimeError("the second fails")
        return self.count


def test_many_pollers_share_one_sample_and_wait_for_no_second():
    takes, now, got = Takes(), [0.0], []
    sampler = SharedSample(takes, clock=lambda: now[0])
    pollers = [threading.Thread(target=lambda: got.append(sampler.sample())) for _ in range(30)]
    pollers[0].start()
    assert takes.begun.wait(10)
    now[0] = 5.0  # however long it takes, whoever comes meanwhile waits for this one
    for poller in pollers[1:]:
        poller.start()
    takes.go.set()
    for poller in pollers:
        poller.join(10)
    assert got == [1] * 30 and takes.count == 1


def test_a_sample_is_as_good_as_new_for_a_second_an_error_too():
    takes, now = Takes(), [0.0]
    takes.go.set()
    sampler = SharedSample(takes, clock=lambda: now[0])
    assert [sampler.sample(), sampler.sample()] == [1, 1]
    now[0] = 1.0
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the second fails"):
            sampler.sample()
    assert takes.count == 2
    now[0] = 2.0
    assert sampler.sample() == 3


def test_what_is_known_is_told_without_waiting_and_what_is_not_is_not():
    takes, now = Takes(), [0.0]
    sampler = SharedSample(takes, clock=lambda: now[0])
    assert sampler.latest() is None
    first = threading.Thread(target=sampler.sample)
    first.start()
    assert takes.begun.wait(10)
    assert sampler.latest() is None  # one is being taken
    takes.go.set()
    first.join(10)
    assert (sampler.latest(), takes.count) == (1, 1)
    now[0] = 0.999
    assert sampler.latest() == 1
    now[0] = 1.0
    assert (sampler.latest(), takes.count) == (None, 1)
    with pytest.raises(RuntimeError):
        sampler.sample()
    assert sampler.latest() is None  # an error is for who samples


def test_pollers_of_the_real_thing_get_at_most_one_a_second():
    sampler = SharedSample(lambda: measure([], 0.05))
    until, seen = time.monotonic() + 1.5, set()
    while time.monotonic() < until:
        seen.add(sampler.sample().time)
    assert len(seen) <= 2
