"""The log's way out: standard error, a sink, several threads, no memory."""

import subprocess
from pathlib import Path

import pytest

from .building import LOG, SANITIZED, build, run

HERE = Path(__file__).parent


def test_sinks(tmp_path):
    done = run(build(tmp_path, "sinks", [*LOG, HERE / "log_sinks.cpp"], *SANITIZED))
    assert done.stderr == (
        b"bankml: error: an error of 1\n"
        b"bankml: warn: ends its line\n"
        b"bankml: info: a NUL: \0.\n"
        b"bankml: debug: \n"
        b"bankml: level -1: of no level\n"
        b"bankml: info: 100%d of its own\n"
        b"bankml: warn: standard error again\n"
    )
    assert done.stdout == (
        b"sink 7 7 text \0.\n"
        b"sink 2 6 a part\n"
        b"sink 2 0 \n"
        b"sink 3 21 100%d of its own %<x>\n"
        b"sink 0 44 a message of the log was lost: out of memory\n"
        b"sink 0 44 a message of the log was lost: out of memory\n"
        b"set within 1 13 logged within\n"
        b"set within 2 12 to the other\n"
    )


def test_a_replaced_sink_is_called_no_more_whatever_other_threads_do(tmp_path):
    threads = build(tmp_path, "threads", [*LOG, HERE / "log_threads.c"], "-g", "-O1", "-fsanitize=thread")
    done = subprocess.run([threads], capture_output=True, check=False, timeout=300)
    if b"unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not know this kernel's memory layout")
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
