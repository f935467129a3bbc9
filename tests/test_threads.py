"""threads.py: threads that leave the process's signals to the threads of the program they run in."""

import ast
import signal
import threading
from pathlib import Path

import pytest

import bankml
from bankml.errors import NO_THREAD
from bankml.threads import start_thread

SOURCE = Path(bankml.__file__).parent
CANNOT_BE_BLOCKED = {signal.SIGKILL, signal.SIGSTOP}


def mask():
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_thread_has_every_signal_blocked_and_its_starter_none_more():
    before, seen = mask(), []
    thread = start_thread(lambda word: seen.append((word, mask(), threading.current_thread().name)), "named", "word")
    thread.join()
    assert seen == [("word", signal.valid_signals() - CANNOT_BE_BLOCKED, "named")]
    assert thread.daemon
    assert mask() == before


def test_a_thread_that_does_not_start_leaves_the_mask(monkeypatch):
    def refuse(_thread):
        raise RuntimeError(NO_THREAD)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    before = mask()
    with pytest.raises(RuntimeError, match=NO_THREAD):
        start_thread(print, "named")
    assert mask() == before


def test_every_thread_starts_this_way():
    # libbankml's loading thread starts with the host's OpenBLAS held back as well: `Quiet` blocks its signals
    allowed = {SOURCE / "threads.py", SOURCE / "capi/loading.py"}
    found = {
        path
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "Thread"
    }
    assert found == allowed
