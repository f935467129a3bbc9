"""One handle of the C API: a model with one slot, answered from by the code that answers `/v1/chat/completions`."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Sequence
from enum import IntEnum

from bankml.api.answering import answer
from bankml.api.call import Call
from bankml.api.echo import Echo
from bankml.api.formats.chat import ChatFormat
from bankml.api.formats.logprobs import Logprobs
from bankml.api.formats.response import BufferedResponse, Receipt, ResponseContext, ResponseFormat, Writer
from bankml.api.generation import ContextRule
from bankml.api.reading.generation import chat_request, read_body
from bankml.capi.reasons import ENDED, Ending, reason_of, where
from bankml.engine.completion import PromptProgress, Step
from bankml.engine.memory import give_back_memory
from bankml.errors import BankmlError, Cancelled, ContextExceeded, EngineFailed, ModelChanged, RequestError
from bankml.http.collected_reply import CollectedReply
from bankml.http.exchange import Reply
from bankml.http.json_out import json_bytes
from bankml.library.residency import Library
from bankml.text.answer import Delta, content_of

Piece = Callable[[bytes], bool]
"""The host's callback: a piece of the response in UTF-8; returns False to stop the generation."""

IGNORED = frozenset(("model", "stream", "stream_options"))
"""Request fields that are ignored: the handle determines the model, and the callback is the stream."""

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
    """A loaded model. Calls, from any thread, run one at a time in the order they came.

    A generation in progress ends between two tokens when `ending()` turns true.
    """

    def __init__(self, library: Library, ending: Ending) -> None:
        self._library = library
        self._ending = ending
        self._callers: set[int] = set()  # the threads that are in `chat`

    def chat(self, request: bytes, piece: Piece | None = None) -> tuple[int, bytes]:
        """Answers the JSON body of a chat request: a Code, and the response object or an error object, as JSON."""
        arrived, caller = time.monotonic(), threading.get_ident()
        if caller in self._callers:
            return _refused(Code.ARG, "bankml_chat was called from within its own callback")
        self._callers.add(caller)
        try:
            return self._answered(request, arrived, piece)
        finally:
            self._callers.discard(caller)

    def _answered(self, request: bytes, arrived: float, piece: Piece | None) -> tuple[int, bytes]:
        try:
            request.decode()
        except UnicodeDecodeError as error:
            return _refused(Code.ARG, f"the request is not UTF-8: byte {error.start} cannot be read")
        try:
            return Code.OK, self._answer(request, arrived, piece or _ignored_piece)
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
        except KeyboardInterrupt:  # the host is a Python program: libbankml raises it there
            raise
        except BaseException as error:
            log.error("%s\n%s", type(error).__name__, where(error))
            return _refused(Code.PANIC, "internal error in bankml; its log has the traceback")

    def _answer(self, request: bytes, arrived: float, piece: Piece) -> bytes:
        body = read_body(request)
        chat = chat_request({name: value for name, value in body.items() if name not in IGNORED})
        reference = self._library.resolve(None)
        reply = CollectedReply(self._ending)

        def writer(context: ResponseContext, form: ResponseFormat, logprobs: Logprobs, to: Reply) -> Writer:
            return PieceWriter(BufferedResponse(context, form, logprobs, to), piece)

        try:
            call = Call(request, arrived, chat, reference, ContextRule(), ChatFormat, route="/v1/chat/completions")
            answer(self._library, call, reply, writer)
        except Cancelled:
            raise EngineFailed(ENDED) from None
        return reply.body

    def close(self) -> None:
        """Frees the model's memory. No call may be in progress, and none may follow."""
        self._library.drop()
        del self._library
        gc.collect()  # also empties the interpreter's caches, so that repeated opening and closing uses no more memory
        give_back_memory()


class PieceWriter:
    """Writes the response object when it is complete, and passes its text to the host's callback as it is generated.

    The pieces joined are the object's content.
    """

    def __init__(self, buffered: Writer, piece: Piece) -> None:
        self._buffered = buffered
        self._piece = piece

    def accept(self) -> None:
        self._buffered.accept()

    def progress(self, progress: PromptProgress) -> None:
        """Not reported."""

    def echo(self, echo: Echo) -> None:
        """A chat has no echo."""

    def step(self, step: Step, deltas: Sequence[Delta]) -> bool:
        """False once the host wants no more: the answer then ends, with `stop` for its reason."""
        self._buffered.step(step, deltas)
        text = content_of(deltas)
        return not text or self._piece(text.encode("utf-8"))

    def end(self, last: Step, receipt: Receipt) -> None:
        self._buffered.end(last, receipt)


def _ignored_piece(piece: bytes) -> bool:
    return True


def _refused(code: Code, message: str, **sizes: int) -> tuple[int, bytes]:
    return code, json_bytes({"error": {"code": int(code), "message": message, **sizes}})
