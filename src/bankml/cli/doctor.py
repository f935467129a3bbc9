"""`bankml doctor`: what a report of a fault needs to say of this machine and this installation."""

import json
import os
import platform
import sys
from argparse import Namespace
from importlib import metadata
from importlib.util import find_spec

from bankml import __version__
from bankml.cli.output import say, write
from bankml.errors import BankmlError

DEPENDENCIES = ("h11", "jinja2", "numpy", "psutil", "shtab", "tqdm", "cryptography", "uvloop", "ray")
PREFIX = "BANKML_"

Facts = dict[str, object]


def doctor(arguments: Namespace) -> int:
    facts = examined(arguments.registry, arguments.paths)
    if arguments.json:
        write(json.dumps(facts, indent=1).encode() + b"\n")
        return 0
    for name, value in facts.items():
        lines = value if isinstance(value, list) else [value]
        for i, line in enumerate(lines or ["none"]):
            say(f"{name if i == 0 else '':12} {line}")
    return 0


def examined(registry: str | None, paths: bool) -> Facts:
    """What is known, by name. Without `paths` there is no path in it, no value of a variable, and no file's name but
    those of pinned models."""
    here = {"installed": os.path.dirname(os.path.dirname(__file__)), "program": sys.executable} if paths else {}
    return {
        "bankml": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "processor": _processor(),
        "kernels": _kernels(),
        "memory": _memory(),
        "packages": [f"{name} {version}" for name in DEPENDENCIES if (version := _version(name))],
        "environment": _environment(paths),
        "pinned": [] if registry is None else _pinned(registry, paths),
        **here,
    }


def _processor() -> str:
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            name = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), name)
    except OSError:
        pass
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {usable} of {os.cpu_count()} cores"


def _kernels() -> str:
    if find_spec("bankml._native") is None:
        return "the native module is missing: bankML was not built"
    try:
        from bankml import _native
    except ImportError as error:
        return f"the native module cannot be loaded: {error}"
    return f"{_native.kernel_set()} (this processor has {', '.join(_native.kernel_sets())})"


def _memory() -> str:
    import psutil

    found = psutil.virtual_memory()
    return f"{found.total >> 20} MiB, {found.available >> 20} available"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _environment(paths: bool) -> list[str]:
    """Names alone, unless paths are wanted: a value may be one."""
    given = sorted(name for name in os.environ if name.startswith(PREFIX))
    return [f"{name}={os.environ[name]}" if paths else name for name in given]


def _pinned(folder: str, paths: bool) -> list[str]:
    from bankml.library.registry import Registry

    try:
        registry = Registry(folder)
        pins, problems = registry.pins(), registry.problems()
    except BankmlError as error:
        return [error.message if paths else error.public_message]
    found = [f"{pin.file} sha256 {pin.sha256}{'' if pin.path else ': the file is missing'}" for pin in pins]
    return found + [f"skipped: {problem.file}: {problem.reason}" for problem in problems]
