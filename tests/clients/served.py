"""A server of tiny models, and the programs that ask it with the field's clients."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.servers import free_port, waiting
from tests.end_to_end.tiny import MODELS, write

HERE = Path(__file__).parent
ROOT = HERE.parent.parent / "build/clients"
"""What `make test-clients` installs: `venv` and `node`."""

MODEL = MODELS[0].name


def write_tiny(path: Path) -> None:
    write(path, MODELS[0])


@contextlib.contextmanager
def serving(folder: Path, name: str = MODEL, write_model: Callable[[Path], None] = write_tiny) -> Iterator[int]:
    """The gateway's port of a server of one tiny model."""
    bankml = [sys.executable, "-m", "bankml"]
    path = folder / f"{name}.gguf"
    write_model(path)
    subprocess.run([*bankml, "pin", str(path), "--fork", f"{path}.FORK.json", "--record"], check=True)
    gate, engine = free_port(), free_port()
    where = ["--listen", f"127.0.0.1:{gate}", "--upstream", f"127.0.0.1:{engine}", "--ctx", "16384"]
    with open(folder / "log", "wb") as log:
        command = [*bankml, "serve", str(path), "--native", *where]
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "BANKML_CACHE_RAM": "0"})
    try:
        waiting(gate, process)
        yield gate
    finally:
        process.terminate()
        process.wait(10)


def run(program: str, port: int, model: str = MODEL) -> dict[str, object]:
    """What a program of `programs` reports."""
    source, address = HERE / "programs" / program, f"http://127.0.0.1:{port}"
    if source.suffix == ".mjs":
        command = ["node", shutil.copy(source, ROOT / "node")]
    else:
        command = [str(ROOT / "venv/bin/python"), str(source)]
    if not Path(command[0]).exists() and shutil.which(command[0]) is None:
        pytest.fail(f"{command[0]} is missing: `make test-clients` installs the clients")
    done = subprocess.run([*command, address, model], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
