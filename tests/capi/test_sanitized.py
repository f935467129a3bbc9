"""The library's own code under the address and undefined-behaviour sanitizers, and the programs that use it."""

import shutil
import sys
import sysconfig

import pytest

from bankml import __version__

from .building import ROOT, SANITIZED, build
from .conftest import PROGRAMS, options, start

DEFINED = {
    "VERSION": __version__,
    "PYTHON": f"{sys.version_info[0]}.{sys.version_info[1]}",
    "PYTHON_PREFIX": sys.base_prefix,
    "PYTHON_LIBDIR": sysconfig.get_config_var("LIBDIR"),
}

# Random addresses may collide with the sanitizer's own maps: a rare crash in the first pthread_create.
FIXED_ADDRESSES = [found, "-R"] if (found := shutil.which("setarch")) else []


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Makes a program of `programs/`, sanitized, with a sanitized library that finds the packages by its run path."""
    folder = tmp_path_factory.mktemp("sanitized")
    given = [*SANITIZED, "-fPIC", "-shared", f"-I{sysconfig.get_paths()['include']}"]
    given += [f'-DBANKML_{name}="{value}"' for name, value in DEFINED.items()]
    given += [f"-Wl,-rpath,{options('--prefix')[0]}/lib"]
    library = build(folder, "libbankml.so", sorted((ROOT / "native/capi").glob("*.cpp")), *given)
    return lambda name: build(folder, name, [PROGRAMS / f"{name}.c"], *SANITIZED, str(library), f"-Wl,-rpath,{folder}")


def test_no_sanitizer_objects(sanitized, bytes_model, tmp_path):
    """Leaks are left to memcheck: Python keeps what it has until the process ends."""
    path = tmp_path / "tiny.gguf"
    shutil.copy(bytes_model.path, path)
    runs = {
        "threads": (bytes_model.path, bytes_model.fork_path),
        "rounds": (bytes_model.path, bytes_model.fork_path, 2),
        "codes": (path, bytes_model.fork_path, f"touch -d 2001-01-01 '{path}'"),
    }
    for name, arguments in runs.items():
        done = start(
            *FIXED_ADDRESSES,
            sanitized(name),
            *arguments,
            ASAN_OPTIONS="detect_leaks=0",
            UBSAN_OPTIONS="print_stacktrace=1",
        )
        assert done.returncode == 0, (name, done.stdout, done.stderr)
