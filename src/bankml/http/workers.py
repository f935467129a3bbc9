"""The worker threads: one per concurrent request, reused, and none that delays the process's exit."""

import time
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue

from bankml.errors import BankmlError, OutOfMemory
from bankml.http.exchange import Application, Request, RequestOutcome
from bankml.http.log import AccessLogEntry, RequestLog
from bankml.http.reply import ReplyState, WireReply
from bankml.http.rules import error_body
from bankml.threads import start_thread

Job = Callable[[], None]


class Workers:
    """Daemon threads. `run` is called from one thread; there are as many threads as there were concurrent jobs."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Job]] = []
        self._started = 0

    def run(self, job: Job) -> None:
        """Runs `job` in an idle thread or a new one. Raises OutOfMemory where the system starts no further thread."""
        try:
            mailbox = self._idle.pop()
        except IndexError:
            mailbox = SimpleQueue()
            try:
                start_thread(self._serve, f"answer-{self._started + 1}", mailbox)
            except RuntimeError:
                raise OutOfMemory from None
            self._started += 1
        mailbox.put(job)

    @property
    def busy(self) -> int:
        """The number of threads that are running a job."""
        return self._started - len(self._idle)

    def settle(self, seconds: float) -> int:
        """Waits at most `seconds` for all to be idle; returns how many are not."""
        until = time.monotonic() + seconds
        while self.busy and time.monotonic() < until:
            time.sleep(0.005)
        return self.busy

    def _serve(self, mailbox: SimpleQueue[Job]) -> None:
        while True:
            job = mailbox.get()
            job()
            self._idle.append(mailbox)


def answer(application: Application, request: Request, reply: WireReply, log: RequestLog) -> None:
    """Handles one request in its thread: the application's response, or that to an internal error, and the log line."""
    try:
        line = application.answer(request, reply)
        if reply.overflowed:
            line = replace(line, note=f"disconnected: the client left {reply.unsent} bytes unread")
        elif reply.progress is not ReplyState.COMPLETE and not reply.gone:
            line = _failed(request, reply, "no complete response was given")
    except MemoryError:
        line = _failed(request, reply, "out of memory", OutOfMemory())
    except BaseException as error:  # a defect: only its type is logged, since its message may quote a user's text
        line = _failed(request, reply, type(error).__name__)
    finally:
        reply.returned()
    seconds = time.monotonic() - request.arrived
    first = None if reply.first_write is None else reply.first_write - request.arrived
    size = 0 if request.method == "HEAD" else reply.size
    log.write(AccessLogEntry(request.address, request.method, request.path, size, seconds, line, first))


def _failed(request: Request, reply: WireReply, what: str, error: BankmlError | None = None) -> RequestOutcome:
    """Sends `error`, by default a 500, if nothing has been sent; else the connection is aborted."""
    if reply.progress is not ReplyState.NOTHING:
        return RequestOutcome(500, note=f"aborted: {what}")
    error = error or BankmlError("internal error; the server's log says more")
    reply.whole(error.status, error_body(error, request.path, request.address))
    return RequestOutcome(error.status, note=f"failed: {what}")
