"""One handle of the C API: a model with one slot, answered from by the code that answers `/v1/chat/completions`."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Sequence
from enum import IntEnum

from bankml.api.answering import Call, answer
from bankml.api.formats.chat import ChatFormat
from bankml.api.formats.logprobs import Logprobs
from bankml.api.formats.response import BufferedResponse, Receipt, ResponseContext, ResponseFormat, Writer
from bankml.api.generation import ContextRule
from bankml.api.reading.generation import chat_request, read_body
from bankml.capi.front import ENDED, Ending, reason_of, where
from bankml.engine.completion import Step
from bankml.engine.memory import give_back_memory
from bankml.errors import BankmlError, Cancelled, ContextExceeded, EngineFailed, ModelChanged, RequestError
from bankml.http.exchange import JSON, Headers, Reply
from bankml.http.json_out import json_bytes
from bankml.library.residency import Library
from bankml.text.answer import Delta, content_of

Piece = Callable[[bytes], bool]
"""The host's callback: a piece of the answer in UTF-8; False when it wants no more."""

IGNORED = frozenset(("model", "stream", "stream_options"))
"""What of a request is not looked at: the handle names the model, and the callback is the stream."""

log = logging.getLogger("bankml.capi")


class Code(IntEnum):
    """What bankml_chat returns, as in bankml.h."""

    OK = 0
    ARG = -1
    REQUEST = -2
    CHANGED = -3
    ENGINE = -4
    PANIC = -5


class Handle:
    """A loaded model. Calls on it, from any thread, stand in its one line.

    An answer under way ends between two tokens when `ending()` turns true.
    """

    def __init__(self, library: Library, ending: Ending) -> None:
        self._library = library
        self._ending = ending
        self._askers: set[int] = set()  # the threads that are in `chat`

    def chat(self, request: bytes, piece: Piece | None = None) -> tuple[int, bytes]:
        """Answers the body of a chat request: a Code and the object that is the answer, or says what was wrong."""
        arrived, asker = time.monotonic(), threading.get_ident()
        if asker in self._askers:
            return _refused(Code.ARG, "the handle is answering this very thread, which asks from within the callback")
        self._askers.add(asker)
        try:
            return self._answered(request, arrived, piece)
        finally:
            self._askers.discard(asker)

    def _answered(self, request: bytes, arrived: float, piece: Piece | None) -> tuple[int, bytes]:
        try:
            request.decode()
        except UnicodeDecodeError as error:
            return _refused(Code.ARG, f"the request is not UTF-8: byte {error.start} cannot be read")
        try:
            return Code.OK, self._answer(request, arrived, piece or _to_nobody)
        except ContextExceeded as error:
            return _refused(Code.REQUEST, error.message, n_prompt_tokens=error.n_prompt_tokens, n_ctx=error.n_ctx)
        except RequestError as error:
            return _refused(Code.REQUEST, error.message)
        except ModelChanged as error:
            log.error("%s", reason_of(error))
            return _refused(Code.CHANGED, error.message)
        except (BankmlError, OSError, MemoryError) as error:
            log.error("%s", reason_of(error))
            return _refused(Code.ENGINE, reason_of(error))
        except KeyboardInterrupt:  # of a Python program that called: libbankml has it raised there
            raise
        except BaseException as error:
            log.error("%s\n%s", type(error).__name__, where(error))
            return _refused(Code.PANIC, "a mistake in bankml itself; its log says where")

    def _answer(self, request: bytes, arrived: float, piece: Piece) -> bytes:
        body = read_body(request)
        chat = chat_request({name: value for name, value in body.items() if name not in IGNORED})
        reference = self._library.resolve(None)
        reply = Collected(self._ending)

        def writer(context: ResponseContext, form: ResponseFormat, logprobs: Logprobs, to: Reply) -> Writer:
            return PieceWriter(BufferedResponse(context, form, logprobs, to), piece)

        try:
            answer(self._library, Call(request, arrived, chat, reference, ContextRule(), ChatFormat), reply, writer)
        except Cancelled:
            raise EngineFailed(ENDED) from None
        return reply.body

    def close(self) -> None:
        """Gives back the model's memory. No call may be under way, and none may follow."""
        self._library.drop()
        del self._library
        gc.collect()  # which also empties the interpreter's own caches, so that rounds of opening and closing are alike
        give_back_memory()


class PieceWriter:
    """An answer as one object when it is complete, and its text to the host as it comes.

    Joined, the pieces are the object's content.
    """

    def __init__(self, whole: Writer, piece: Piece) -> None:
        self._whole = whole
        self._piece = piece
        self._prefill = ""

    def begin(self, prefill: str) -> None:
        self._prefill = prefill
        self._whole.begin(prefill)

    def step(self, step: Step, deltas: Sequence[Delta]) -> bool:
        """False once the host wants no more: the answer then ends, with `stop` for its reason."""
        self._whole.step(step, deltas)
        text, self._prefill = self._prefill + content_of(deltas), ""
        return not text or self._piece(text.encode("utf-8"))

    def end(self, last: Step, receipt: Receipt) -> None:
        self._whole.end(last, receipt)


class Collected:
    """Where an answer goes that is not sent: it waits for whoever called, who cannot hang up but by ending Python."""

    def __init__(self, ending: Ending) -> None:
        self.body = b""
        self.cancelled = ending

    def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        self.body = body

    def start(self, status: int, content_type: str) -> None:
        self.body = b""

    def write(self, data: bytes) -> bool:
        self.body += data
        return True

    def finish(self) -> None:
        pass


def _to_nobody(piece: bytes) -> bool:
    return True


def _refused(code: Code, message: str, **sizes: int) -> tuple[int, bytes]:
    return code, json_bytes({"error": {"code": int(code), "message": message, **sizes}})
