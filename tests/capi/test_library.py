"""libbankml as C programs use it: linked, loaded, in many threads, beside another Python. Each checks itself."""

import json
import shutil
import sys
import sysconfig
from pathlib import Path

import cffi
import pytest

from bankml import __version__

from .building import ROOT, program, run
from .conftest import BANKML, options, start

HEADER = ROOT / "include/bankml.h"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


@pytest.mark.parametrize("standard", ["c99", "c11", "c++17"])
def test_the_header_compiles_without_a_warning(standard, tmp_path):
    cxx = standard.startswith("c++")
    source = tmp_path / ("one.cpp" if cxx else "one.c")
    source.write_text('#include "bankml.h"\n#include "bankml.h"\nint main(void) { return bankml_version() == 0; }\n')
    run(program("c++" if cxx else "cc"), f"-std={standard}", *STRICT, f"-I{HEADER.parent}", source)


def test_cffi_reads_the_header_and_calls_the_library():
    plain = ["-DBANKML_API=", "-DBANKML_PRINTF(text,first)="]
    text = run(program("cc"), "-E", "-P", *plain, "-D_STDINT_H", "-D__need_size_t", HEADER).stdout.decode()
    ffi = cffi.FFI()
    ffi.cdef(text[text.index("enum {") :])
    library = ffi.dlopen(options("--prefix")[0] + "/lib/libbankml.so")
    assert ffi.string(library.bankml_version()).decode() == __version__
    assert (library.BANKML_OK, library.BANKML_E_PANIC, library.BANKML_LOG_DEBUG) == (0, -5, 3)


def test_nothing_but_the_seven_functions_is_exported():
    names = run(program("nm"), "-D", "--defined-only", options("--prefix")[0] + "/lib/libbankml.so").stdout.decode()
    ours = {line.split()[-1] for line in names.splitlines()}
    assert ours == {f"bankml_{name}" for name in ("version", "open", "chat", "close", "free", "set_log", "log")}


def test_what_bankml_capi_prints():
    prefix = options("--prefix")[0]
    assert options("--cflags") == [f"-I{prefix}/include"]
    assert options("--libs") == [f"-L{prefix}/lib", "-lbankml", f"-Wl,-rpath,{prefix}/lib"]
    for wrong in ([], ["--static"], ["--static", "--cflags"]):
        done = start(BANKML, "capi", *wrong)
        assert done.returncode == 1 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_pkg_config_says_the_same():
    prefix = options("--prefix")[0]
    environment = {"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "PATH": "/usr/bin:/bin"}
    said = run(program("pkg-config"), "--cflags", "--libs", "bankml", env=environment).stdout.decode().split()
    folders = {str(Path(word.lstrip("-IL")).resolve()) for word in said if word[:2] in ("-I", "-L")}
    assert folders == {f"{prefix}/include", f"{prefix}/lib"} and "-lbankml" in said


@pytest.mark.parametrize("libs", [("--libs",), ("--libs", "--static")], ids=["shared", "static"])
def test_a_host_is_left_as_it_was(compiled, bytes_model, libs):
    """Handlers, mask, locale, rounding, flushing and flags: after every call, in callbacks and in the sink."""
    done = start(compiled("host", libs=libs), bytes_model.path, bytes_model.fork_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" 0 wrong\n")


def test_threads_and_callbacks_do_not_change_an_answer(compiled, bytes_model):
    done = start(compiled("threads"), bytes_model.path, bytes_model.fork_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_library_loaded_for_a_plug_in_alone(compiled, bytes_model):
    library = options("--prefix")[0] + "/lib/libbankml.so"
    done = start(compiled("plugin", "-ldl"), library, bytes_model.path, bytes_model.fork_path)
    assert (done.returncode, done.stdout) == (0, "0\n0\n"), done.stderr


def test_a_program_that_embeds_python_already(compiled, bytes_model):
    """The library uses its Python, adds its packages only as they are missing, and does not survive its end."""
    paths = sysconfig.get_paths()
    libdir, version = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDVERSION")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("this Python has no shared library to embed")
    link = (f"-I{paths['include']}", f"-L{libdir}", f"-lpython{version}", f"-Wl,-rpath,{libdir}")
    done = start(compiled("embedder", *link), bytes_model.path, bytes_model.fork_path, PYTHONHOME=sys.base_prefix)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, runs, ended = done.stdout.splitlines()
    assert (first, second, runs) == ("0", "0", "runs")
    code, result = ended.split(" ", 1)
    assert code == "-4" and json.loads(result) == {"error": {"code": -4, "message": "the program has ended its Python"}}


def test_a_library_that_has_lost_its_package_says_so(compiled, bytes_model, tmp_path):
    copied = tmp_path / "libbankml.so"
    shutil.copy(options("--prefix")[0] + "/lib/libbankml.so", copied)
    done = start(compiled("answers"), bytes_model.path, bytes_model.fork_path, 0, 0, LD_PRELOAD=str(copied))
    assert done.returncode == 2
    assert done.stdout == f"error: there is no bankml package around {copied}: link with $(bankml capi --libs)\n"


def test_no_variable_of_python_has_a_say(compiled, bytes_model, tmp_path):
    (tmp_path / "bankml.py").write_text("raise SystemExit('the wrong bankml')")
    wrong = {"PYTHONHOME": "/nowhere", "PYTHONPATH": str(tmp_path), "VIRTUAL_ENV": "/nowhere", "PATH": "/nowhere"}
    done = start(compiled("answers"), bytes_model.path, bytes_model.fork_path, 0, 0, **wrong)
    assert done.returncode == 0, done.stdout + done.stderr


INTERRUPTED = """
import ctypes, os, signal, sys, threading
library = ctypes.CDLL(sys.argv[1])
library.bankml_open.restype = ctypes.c_void_p
handle = library.bankml_open(sys.argv[2].encode(), sys.argv[3].encode(), 8192, None)
request = b'{"messages": [{"role": "user", "content": "a"}], "ignore_eos": true, "logit_bias": [[256, false]]}'
result = ctypes.c_char_p()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    library.bankml_chat(ctypes.c_void_p(handle), request, None, None, ctypes.byref(result))
    for _ in range(100): pass
except KeyboardInterrupt:
    print("KeyboardInterrupt", result.value.decode())
"""


def test_ctrl_c_of_a_python_program_is_its_own(bytes_model):
    """It ends the answer, and is raised where the program called, after the call."""
    library = options("--prefix")[0] + "/lib/libbankml.so"
    done = start(Path(sys.executable), "-c", INTERRUPTED, library, bytes_model.path, bytes_model.fork_path)
    assert done.stdout == 'KeyboardInterrupt {"error": {"code": -4, "message": "interrupted"}}\n', done.stderr
