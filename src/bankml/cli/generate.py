"""`bankml generate`: one answer of the chat route, on the terminal instead of over HTTP."""

import math
import os
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType

from bankml.api.answering import answer
from bankml.api.call import call_of, response_writer
from bankml.api.echo import Echo
from bankml.api.formats.chat import ChatFormat
from bankml.api.formats.logprobs import Logprobs
from bankml.api.formats.response import Receipt, ResponseContext, ResponseFormat, Writer
from bankml.api.reading.generation import MAX_TOKENS_FIELDS, chat_request
from bankml.api.reading.plain_input import request_or_text_in
from bankml.cli.issuer import issuer_of
from bankml.cli.output import write
from bankml.cli.stdin import read_bytes
from bankml.cli.verified import fork_of, model_to_open
from bankml.engine.completion import PromptProgress, Step
from bankml.errors import Cancelled, UsageError
from bankml.http.exchange import JSON, Headers, Reply, Request
from bankml.library.load import LoadOptions, open_library
from bankml.library.supported import require_supported
from bankml.sampling.numbers import INT32_MAX
from bankml.sampling.parameters import RANDOM_SEED
from bankml.text.answer import Delta, content_of

SAMPLING: Mapping[str, tuple[float, float]] = {
    "temperature": (0, math.inf),
    "top_k": (0, INT32_MAX),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "seed": (-1, RANDOM_SEED),
}
"""A request's fields with an option of their own, and the range of each.

A value out of range in a request is clamped, as in llama-server (a seed refused); one on the command line is refused.
"""

ROUTE = "/v1/chat/completions"


def generate(arguments: Namespace) -> int:
    """All errors of the request are found before a file is opened."""
    options = _sampling_options(arguments)
    if arguments.sign_key is not None and not arguments.json:
        raise UsageError("--sign-key signs the receipt, which only --json prints: give --json with it")
    issuer = issuer_of(arguments)
    fork = fork_of(arguments.file, arguments.fork)
    raw = read_bytes()
    arrived = time.monotonic()
    given = request_or_text_in(raw)
    asked = _fields(given, arguments, options)
    chat = chat_request(asked)
    verified = model_to_open(arguments.file, fork, require_supported)
    library = open_library(verified, LoadOptions(arguments.ctx, arguments.threads))
    library.issuer = issuer
    request = Request("POST", ROUTE, "", {}, raw, "gateway", arrived)
    terminal = Terminal()
    with terminal.listening(), suppress(Cancelled):
        call = replace(call_of(library, chat, request, ChatFormat), fields=_replaced(given, asked))
        answer(library, call, terminal, response_writer if arguments.json else terminal.writer)
    if terminal.interrupted:
        terminal.finish()
        raise KeyboardInterrupt
    return 0


def _sampling_options(arguments: Namespace) -> dict[str, object]:
    given = {name: getattr(arguments, name) for name in SAMPLING if getattr(arguments, name) is not None}
    for name, value in given.items():
        option = "--temp" if name == "temperature" else f"--{name.replace('_', '-')}"
        if not arguments.sample:
            raise UsageError(f"{option} applies to sampling: give --sample with it")
        if not math.isfinite(value):
            raise UsageError(f"{option} {value} is not a finite number")
        low, high = SAMPLING[name]
        if not low <= value <= high:
            range_ = f"{low} to {high}" if math.isfinite(high) else f"{low} or more"
            raise UsageError(f"{option} {value} is out of range: {range_}")
    return given


def _fields(request: Mapping[str, object], arguments: Namespace, options: Mapping[str, object]) -> dict[str, object]:
    """The request with the command line's options. Without --sample it is greedy, unless it has a temperature."""
    fields = dict(request)
    if not arguments.sample and fields.get("temperature") is None:
        fields["temperature"] = 0
    if arguments.max is not None:
        fields = {name: value for name, value in fields.items() if name not in MAX_TOKENS_FIELDS}
        fields["max_tokens"] = arguments.max
    return {**fields, **options, "stream": False}


def _replaced(given: Mapping[str, object], asked: Mapping[str, object]) -> dict[str, object]:
    """The members of the request that the command line set; None for those that it took away."""
    return {name: asked.get(name) for name in (*given, *asked) if given.get(name) != asked.get(name)}


class Terminal:
    """stdout as a Reply. Ctrl-C ends the answer between two tokens, a second one at once."""

    def __init__(self) -> None:
        self.interrupted = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """During the `with` block Ctrl-C sets `cancelled`."""

        def interrupt(signum: int, frame: FrameType | None) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True

        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
            yield  # signals belong to the main thread, or are ignored on purpose
            return
        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def cancelled(self) -> bool:
        return self.interrupted

    def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        if status == 200:
            self.write(body + b"\n")

    def start(self, status: int, content_type: str, ping_interval: float | None = None, headers: Headers = ()) -> None:
        """A stream to a terminal has no head."""

    def write(self, data: bytes) -> bool:
        write(data)
        return True

    def finish(self) -> None:
        """Ends the last line."""
        if os.isatty(sys.stdout.fileno()):
            self.write(b"\n")

    def writer(self, context: ResponseContext, form: ResponseFormat, logprobs: Logprobs, reply: Reply) -> Writer:
        return TextWriter(self)


class TextWriter:
    """Writes only the answer's text, as it is generated."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def accept(self) -> None:
        """Nothing is printed before the first token."""

    def progress(self, progress: PromptProgress) -> None:
        """Not reported."""

    def echo(self, echo: Echo) -> None:
        """A chat has no echo."""

    def step(self, step: Step, deltas: Sequence[Delta]) -> bool:
        self._write(content_of(deltas))
        return True

    def end(self, last: Step, receipt: Receipt) -> None:
        self._terminal.finish()

    def _write(self, text: str) -> None:
        if text:
            self._terminal.write(text.encode())
