"""The pool, the products and attention under ThreadSanitizer: no data race, and the bits of one thread."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
FLAGS = ["-std=c++20", "-g", "-O1", "-ffp-contract=off", "-fsanitize=thread", f"-I{NATIVE}"]
# The portable definition: every thread's memory is the same under other instruction sets.
SOURCES = [
    Path(__file__).with_name("threads.cpp"),
    *NATIVE.glob("kernels/*.cpp"),
    *NATIVE.glob("kernels/portable/*.cpp"),
    *NATIVE.glob("activations/*/format.cpp"),
    *NATIVE.glob("activations/*/portable.cpp"),
    *(NATIVE / "formats" / name / "portable.cpp" for name in ("f16", "q4_0", "q4_K")),
    *(NATIVE / "isa" / name for name in ("instruction_set.cpp", "portable.cpp", "generic.cpp")),
]


def test_no_thread_races_another(tmp_path):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no c++")

    def compiled(numbered):
        number, source = numbered
        to = tmp_path / f"{number}.o"
        done = subprocess.run([compiler, *FLAGS, "-c", source, "-o", to], capture_output=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return to

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, enumerate(SOURCES)))
    program = tmp_path / "threads"
    linked = subprocess.run([compiler, *FLAGS, *objects, "-o", program, "-lpthread"], capture_output=True, check=False)
    assert linked.returncode == 0, linked.stderr.decode(errors="replace")
    # A process has one sanitizer: `make sanitize` preloads the address sanitizer, which this program must not get.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    fixed = (
        ["setarch", "-R"] if shutil.which("setarch") else []
    )  # random addresses may collide with the sanitizer's maps
    done = subprocess.run([*fixed, program], env=environment, capture_output=True, check=False, timeout=300)
    if b"unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not know this kernel's memory layout")
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
