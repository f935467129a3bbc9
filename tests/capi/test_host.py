"""What a host does not notice: shortages, its own end, signals and settings of its other threads."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from .building import program, run
from .conftest import PROGRAMS, WARNINGS, options, start


@pytest.mark.parametrize("mebibytes", [5, 12, 30, 60, 85, 110, 140])
def test_no_shortage_of_memory_ends_the_host(compiled, bytes_model, mebibytes):
    """numpy's OpenBLAS would call exit with what is enough for everything before it."""
    done = start(compiled("short"), bytes_model.path, bytes_model.fork_path, "memory", mebibytes)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("error: ") and done.stdout.count("\n") == 1


@pytest.fixture
def public(bytes_model):
    """The model where anybody may read it."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = shutil.copy(bytes_model.path, folder)
        yield path, shutil.copy(bytes_model.fork_path, folder)


@pytest.mark.parametrize(("most", "asked"), [(1, 1), (1, 3), (2, 3), (5, 3)])
def test_no_shortage_of_threads_ends_the_host(compiled, public, most, asked):
    """OpenBLAS would raise SIGINT, and a pool of which some threads run must not be dropped."""
    if os.getuid() != 0:
        pytest.skip("needs root, to become someone whose threads are counted")
    library = Path(options("--prefix")[0]) / "lib/libbankml.so"
    anybody = [program("setpriv"), "--reuid=65534", "--clear-groups", "--regid=65534"]
    if subprocess.run([*anybody, "test", "-r", library, "-a", "-r", __file__], check=False).returncode:
        pytest.skip("nobody else may read this environment")
    done = start(compiled("short"), *public, "threads", most, BANKML_THREADS=str(asked))
    said = "opened\n" if most >= asked else f"error: cannot start {asked} threads\n"
    assert (done.returncode, done.stdout) == (0, said), done.stderr
    assert "OpenBLAS" not in done.stderr


def test_signals_and_settings_are_the_hosts(compiled, bytes_model):
    done = start(compiled("threaded"), bytes_model.path, bytes_model.fork_path, BANKML_THREADS="3")
    assert (done.returncode, done.stdout) == (0, "0, 0 on threads of the library, 0 undone\n"), done.stderr


ENVIRONMENT = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
library.bankml_open.restype = ctypes.c_void_p
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(getenv(b"OPENBLAS_NUM_THREADS"), bool(library.bankml_open(sys.argv[2].encode(), sys.argv[3].encode(), 256, None)))
print(getenv(b"OPENBLAS_NUM_THREADS"))
"""


def test_python_hosts_choose_their_blas(bytes_model):
    library = options("--prefix")[0] + "/lib/libbankml.so"
    for given in ({}, {"OPENBLAS_NUM_THREADS": "2"}):
        done = start(Path(sys.executable), "-c", ENVIRONMENT, library, bytes_model.path, bytes_model.fork_path, **given)
        value = given.get("OPENBLAS_NUM_THREADS")
        value = value and value.encode()
        assert done.stdout == f"{value} True\n{value}\n", done.stderr


def embedder(name, folder):
    """A program of `programs/` that embeds this Python."""
    paths, libdir = sysconfig.get_paths(), sysconfig.get_config_var("LIBDIR")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("this Python has no shared library to embed")
    python = [f"-I{paths['include']}", f"-L{libdir}", f"-lpython{sysconfig.get_config_var('LDVERSION')}"]
    given = [*options("--cflags"), PROGRAMS / f"{name}.c", *python, f"-Wl,-rpath,{libdir}", *options("--libs")]
    run(program("cc"), "-std=gnu11", *WARNINGS, *given, "-lpthread", "-o", folder / name)
    return folder / name


def test_a_python_that_ends_waits_for_answers_and_is_the_last(bytes_model, tmp_path):
    done = start(embedder("ends", tmp_path), bytes_model.path, bytes_model.fork_path, PYTHONHOME=sys.base_prefix)
    assert done.returncode == 0, done.stdout + done.stderr
    ended = "error: the program has ended its Python"
    held = "error: the call came with the GIL of a subinterpreter held: release it first"
    assert done.stdout.splitlines() == [held, "0 -4", ended, ended, "-4"]


DAEMON = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
library.bankml_open.restype = ctypes.c_void_p
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
library.bankml_chat.argtypes = [ctypes.c_void_p, ctypes.c_char_p, kind, ctypes.c_void_p, ctypes.c_void_p]
handle = library.bankml_open(sys.argv[2].encode(), sys.argv[3].encode(), 8192, None)
request = b'{"messages": [{"role": "user", "content": "a"}], "ignore_eos": true, "logit_bias": [[256, false]]}'
begun = threading.Event()
piece = kind(lambda text, size, user: begun.set() or 1)
for _ in range(2):
    threading.Thread(target=library.bankml_chat, args=(handle, request, piece, None, None), daemon=True).start()
begun.wait()
"""


def test_a_python_program_ends_while_daemon_threads_ask(bytes_model):
    library = options("--prefix")[0] + "/lib/libbankml.so"
    done = start(Path(sys.executable), "-c", DAEMON, library, bytes_model.path, bytes_model.fork_path)
    assert done.returncode == 0, done.stderr


EARLY = """
import ctypes, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
names = sys.argv[2].encode(), sys.argv[3].encode()
threading.Thread(target=library.bankml_open, args=(*names, 256, None), daemon=True).start()
time.sleep(float(sys.argv[4]))
"""


def test_a_python_that_is_ending_is_not_started_again(bytes_model):
    library = options("--prefix")[0] + "/lib/libbankml.so"
    for wait in ("0", "0.001"):
        given = ("-c", EARLY, library, bytes_model.path, bytes_model.fork_path, wait)
        done = start(Path(sys.executable), *given)
        assert done.returncode == 0, done.stderr


THROWS = """
#include <bankml.h>
#include <stdexcept>
int main(int, char **argv) {
    bankml_t *model = bankml_open(argv[1], argv[2], 256, nullptr);
    auto piece = [](const char *, std::size_t, void *) -> int { throw std::runtime_error("from a callback"); };
    const char *request = R"({"messages": [{"role": "user", "content": "a"}]})";
    return bankml_chat(model, request, piece, nullptr, nullptr);
}
"""


def test_an_exception_out_of_a_callback_ends_the_program_there(bytes_model, tmp_path):
    source = tmp_path / "throws.cpp"
    source.write_text(THROWS)
    run(program("c++"), "-std=c++17", *options("--cflags"), source, *options("--libs"), "-o", tmp_path / "throws")
    done = start(tmp_path / "throws", bytes_model.path, bytes_model.fork_path)
    assert done.returncode < 0 and "from a callback" in done.stderr
