"""llama-server as a child process that does not outlive bankML.

On Linux the child asks the kernel, before it executes llama-server, to be killed when the thread that started it ends
(prctl(2), PR_SET_PDEATHSIG): so whatever ends bankML, SIGKILL included, ends the child. The main thread must start it,
which lives as long as the process. A parent that died before the prctl is noticed by its process id.

The child has a process group of its own, so that a terminal's Ctrl-C reaches bankML alone and responses can be
completed. A wrapper script's own children are in that group too, and end with it (process_group). The output goes to a
log file if one is named; otherwise its last lines are kept for the message about an unexpected end.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from bankml.errors import EngineFailed, FileProblem, UsageError
from bankml.files import problem
from bankml.threads import start_thread
from bankml.upstream.client import SocketName
from bankml.upstream.process_group import ProcessGroup

READY_WITHIN = 900.0
"""Seconds for a spawned engine to load its model."""

_PR_SET_PDEATHSIG = 1
_STOPS_WITHIN = 0.7  # seconds from SIGTERM to SIGKILL: with the gateway's grace, less than five
_LINES_KEPT = 20
_LINES_SHOWN = 3
_LINE = 4096  # bytes of a line that are kept
_ENGINE_VARIABLES = ("LLAMA_ARG_", "LLAMA_API_KEY")  # would add options to the command line


@dataclass(frozen=True)
class SpawnOptions:
    """How llama-server is started: `program` as for execvp, `model` the canonical path, `slot_dir` an existing folder.

    `reasoning` is llama-server's option of that name. `log` is the file its output is appended to. `mmap`: llama-server
    maps the file instead of reading it into memory.
    """

    program: str
    model: str
    address: SocketName
    threads: int
    n_ctx: int
    spec_ngram: bool = False
    slot_dir: str | None = None
    log: str | None = None
    mmap: bool = False
    reasoning: str = "off"

    @property
    def command(self) -> list[str]:
        host, port = self.address
        words = [self.program, "-m", self.model, "--host", host, "--port", str(port)]
        words += ["-t", str(self.threads), "-c", str(self.n_ctx), "-np", "1"]
        words += ["--jinja", "--reasoning", self.reasoning, "--no-webui"]
        words += [] if self.mmap else ["--load-mode", "none"]  # what was --no-mmap before b11192
        words += ["--spec-type", "ngram-simple"] if self.spec_ngram else []
        words += ["--slot-save-path", self.slot_dir] if self.slot_dir else []
        return words


class Child:
    """The running child. `ended` is called, in another thread, with a message when it ends without `stop`."""

    def __init__(self, process: "subprocess.Popen[bytes]", group: ProcessGroup, ended: Callable[[str], object]) -> None:
        self._process = process
        self._group = group
        self._ended = ended
        self._stopping = False
        self._last: deque[bytes] = deque(maxlen=_LINES_KEPT)
        self._watcher = start_thread(self._watch, "llama-server")

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> None:
        """Raises EngineFailed once the child has ended."""
        code = self._process.poll()
        if code is not None:
            self._watcher.join(0.2)  # for its last lines
            raise EngineFailed(self._exit_message(code))

    def stop(self) -> None:
        """SIGTERM to the group, then SIGKILL; returns when the child has ended."""
        self._stopping = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._group.signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                until = time.monotonic() + _STOPS_WITHIN
                self._process.wait(_STOPS_WITHIN)
                if self._group.wait(until - time.monotonic()):
                    break
        self._process.wait()
        self._group.release()

    def _watch(self) -> None:
        if self._process.stdout is not None:
            _keep_lines(self._process.stdout, self._last)
        code = self._process.wait()
        if not self._stopping:
            self._ended(self._exit_message(code))

    def _exit_message(self, code: int) -> str:
        how = f"by {_signal_name(-code)}" if code < 0 else f"with exit code {code}"
        lines = [line.decode("utf-8", "replace").strip() for line in self._last]
        last = " | ".join([line for line in lines if line][-_LINES_SHOWN:])
        return f"llama-server ended {how}" + (f"; its last output: {last}" if last else "")


def _keep_lines(output: IO[bytes], lines: deque[bytes]) -> None:
    complete = True
    while line := output.readline(_LINE):
        if complete:
            lines.append(line)
        complete = line.endswith(b"\n")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def spawned(spawning: SpawnOptions, ended: Callable[[str], object]) -> Iterator[Child]:
    """llama-server, running for the `with` block. Call it from the main thread.

    Raises UsageError when the program cannot be started, FileProblem when the log cannot be written.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("the child is killed when the thread that started it ends: start it from the main thread")
    with contextlib.ExitStack() as stack:
        process = _start(spawning, stack)
        try:
            child = Child(process, ProcessGroup(process.pid), ended)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        try:
            yield child
        finally:
            child.stop()


def _start(spawning: SpawnOptions, stack: contextlib.ExitStack) -> "subprocess.Popen[bytes]":
    program = shutil.which(spawning.program)
    if program is None:
        raise UsageError(f"--spawn {spawning.program}: no such executable program")
    output: int | IO[bytes] = subprocess.PIPE
    if spawning.log is not None:
        output = stack.enter_context(_open_log(spawning.log))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_ENGINE_VARIABLES)}
    try:
        return subprocess.Popen(
            spawning.command,
            executable=program,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            process_group=0,
            # the only way to call prctl in the child; it takes no lock that another thread could hold at the fork
            preexec_fn=_die_with_parent(),  # noqa: PLW1509
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"--spawn {spawning.program} cannot be started: {error}") from None


def _open_log(path: str) -> IO[bytes]:
    """The log file, created if missing. Never waits for a FIFO's reader. Raises FileProblem."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        # readable by its owner only: at a high verbosity llama-server logs users' text
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise problem("write", path, error) from error
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISCHR(kind)):
        os.close(descriptor)
        raise FileProblem(f"cannot write {path}: not a regular file or a device", path)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


def _die_with_parent() -> Callable[[], None] | None:
    """The child's code between fork and exec; everything it needs is looked up before. None without prctl."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def ask_the_kernel() -> None:
        if prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(127)

    return ask_the_kernel


def refuse_if_answering(address: SocketName, shown: str) -> None:
    """Raises UsageError when another program listens at `address`: it would respond in the engine's place."""
    try:
        socket.create_connection(address, 1.0).close()
    except OSError:
        return
    raise UsageError(f"--upstream {shown}: the address is in use; stop what listens there or name another port")
