"""The life of one response, whichever API it is for: queue, load the model, generate, write, receipt."""

import time
from contextlib import suppress
from typing import Protocol

from bankml.api import one_answer, several_answers
from bankml.api.call import Call, WriterOf, response_writer
from bankml.errors import Cancelled, LogUnavailable
from bankml.grammar.thought import ThoughtTracker
from bankml.http.exchange import Reply, RequestOutcome
from bankml.http.tracked_reply import CANCELLED, CLIENT_LEFT, RequestCancelled
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.issuer import Outcome
from bankml.receipt.receipt import Tally


class Prepared(Protocol):
    """A request that is bound to a loaded model. `id` is that of the response."""

    @property
    def id(self) -> str: ...

    @property
    def thought(self) -> ThoughtTracker | None:
        """The thought that another request may end."""

    @property
    def prompt_tokens(self) -> int: ...

    @property
    def tally(self) -> Tally: ...

    def accept(self) -> None:
        """The request is accepted: a stream's head is sent. Raises ModelChanged."""

    def run(self, reply: Reply) -> RequestOutcome:
        """Generates and writes."""


def answer(library: Library, call: Call, reply: Reply, writer_of: WriterOf = response_writer) -> RequestOutcome:
    """Waits for the model, loads it, generates and writes.

    A request to the loaded model is bound to it before it waits, so that its errors are reported at once, and again
    only when the model was switched meanwhile. Raises, before anything is written, what can still be wrong by then.
    """

    def prepare(resident: Resident, loading: float) -> Prepared:
        if call.request.answers > 1:
            return several_answers.prepare(call, resident, loading, reply)
        return one_answer.prepare(call, resident, loading, reply, writer_of)

    call.issuer.require_ready()
    resident = library.resident_as(call.reference)
    prepared = None if resident is None else prepare(resident, 0.0)
    try:
        if prepared is not None:  # a stream's head is sent before its request waits
            prepared.accept()
        with library.share(call.reference, reply.cancelled, call.request.answers):
            began = time.monotonic()
            ready = library.ready(call.reference)
            try:
                if prepared is None or ready is not resident:
                    if reply.cancelled():
                        raise Cancelled
                    accepted = prepared is not None
                    prepared = prepare(ready, time.monotonic() - began)
                    if not accepted:
                        prepared.accept()
                with library.live.generating(prepared.id, prepared.thought):
                    return _run(prepared, reply)
            finally:
                library.keep(call.keep)
    except RequestCancelled:
        raise
    except Cancelled:
        if prepared is None:
            raise
        raise RequestCancelled(RequestOutcome(CLIENT_LEFT, prepared.prompt_tokens, note=CANCELLED)) from None


def _run(prepared: Prepared, reply: Reply) -> RequestOutcome:
    """Generates and writes. What is cancelled or fails before its receipt gets one in the log, which says so."""
    try:
        return prepared.run(reply)
    except RequestCancelled as cancelled:
        _record(prepared, "cancelled", cancelled.outcome.completion_tokens)
        raise
    except Cancelled:
        _record(prepared, "cancelled", 0)
        raise
    except Exception:
        _record(prepared, "failed", None)
        raise


def _record(prepared: Prepared, outcome: Outcome, completion_tokens: int | None) -> None:
    with suppress(LogUnavailable):  # what ended the answer is the error that is reported
        prepared.tally.unfinished(outcome, prepared.prompt_tokens, completion_tokens)
