"""What opening, answering and closing leave behind: nothing that grows, and nothing that memcheck objects to."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ENVIRONMENT, start

SUPPRESSIONS = Path(__file__).parent / "memcheck.supp"
GROWTH = 3 << 10
"""Bytes a round: CPython's cache of attribute look-ups holds on to names until its 4096 places are full. A model that
stayed would be a hundred times as much."""


def test_fifty_rounds_leave_nothing_that_grows(compiled, bytes_model):
    done = start(compiled("rounds"), bytes_model.path, bytes_model.fork_path, 10, 50, PYTHONMALLOC="malloc")
    assert done.returncode == 0, done.stdout + done.stderr
    ten, fifty = map(int, done.stdout.split())
    if ten == 0:
        pytest.skip("this C library does not count what it gives away")
    assert bytes_model.identity.size > 20 * GROWTH
    assert fifty - ten < 40 * GROWTH


BLOCKS = """
import gc, sys
from bankml import __version__
from bankml.capi.front import attach, open_handle
attach(__version__, lambda level, message: None)
how = (lambda: False, lambda function: function())
request = b'{"messages": [{"role": "user", "content": "a b"}], "max_tokens": 6, "json_schema": {}, "logprobs": true}'
def rounds(n):
    for _ in range(n):
        assert open_handle(sys.argv[1], sys.argv[1], 256, [], *how)[0] is None
        handle, _ = open_handle(sys.argv[1], sys.argv[2], 256, ["BANKML_THREADS", "1"], *how)
        assert handle.chat(b"{}")[0] == -2 and handle.chat(request, lambda piece: len(piece) > 1)[0] == 0
        handle.close()
    gc.collect()
    sys._clear_type_cache()
    return sys.getallocatedblocks()
first, second = rounds(10), rounds(20)
print(second - first)
"""


def test_no_object_of_python_stays(bytes_model):
    """Without that cache, which the interpreter can be told to empty, not a block is left of twenty rounds."""
    done = start(Path(sys.executable), "-c", BLOCKS, bytes_model.path, bytes_model.fork_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 20


def test_memcheck_finds_nothing(compiled, bytes_model):
    """benchmarks/capi.py does the same for fifty rounds."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("no valgrind")
    how = [f"--suppressions={SUPPRESSIONS}", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    how += ["--show-leak-kinds=definite", "--error-exitcode=99"]
    done = subprocess.run(
        [valgrind, *how, compiled("rounds"), bytes_model.path, bytes_model.fork_path, "2"],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "PYTHONMALLOC": "malloc"},
    )
    assert done.returncode == 0, done.stderr
    assert "ERROR SUMMARY: 0 errors" in done.stderr
