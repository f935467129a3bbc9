"""The application in front of llama-server: forwards its responses, those of the chat with a receipt.

    path                                     handled by
    GET /bankml                              bankML: what was verified, and where the engine is
    POST /bankml/verify                      bankML: hashes the file again
    GET /health /props /v1/models            the engine
    POST /v1/chat/completions                the engine, with a receipt added

Before every response of the engine, the file and the engine are checked (see verifier), and before every receipt the
file is checked again. An error response of the engine is passed on, status and body; a response that cannot be read
becomes a 502, or an error event once a stream has begun, and no receipt.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from bankml.errors import Cancelled, EngineFailed, LogUnavailable, MethodNotAllowed, NotFound
from bankml.http.exchange import EVENT_STREAM, JSON, TEXT, Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes, rehashed
from bankml.http.relay import Relay
from bankml.http.reply import WireReply
from bankml.http.tracked_reply import TrackedReply, respond
from bankml.measure.prometheus import ServerState
from bankml.receipt.issuer import UNSIGNED, Issuer, Outcome
from bankml.receipt.receipt import Tally
from bankml.upstream.client import EngineAnswer, EngineResponse, Patience
from bankml.upstream.status import ENGINE, model_name, status
from bankml.upstream.transcript import EventStream, Transcript, with_receipt
from bankml.upstream.verifier import EngineErrorResponse, EngineVerifier, VerifiedConnection


class Outgoing(TrackedReply):
    """A reply over one of the server's own connections, which can relay."""

    def relay(self, relay: Relay) -> None:
        """Raises Cancelled, or what the relay's source raised."""
        if not isinstance(self.reply, WireReply):
            raise TypeError("only a reply over one of the server's connections can relay")
        if not self.reply.relay(relay):
            raise Cancelled


@dataclass(frozen=True)
class _Events:
    """The events of a stream as the source of a relay."""

    answer: EngineAnswer
    stream: EventStream

    def fileno(self) -> int:
        return self.answer.connection.fileno()

    def pull(self) -> bytes:
        return self.stream.split(self.answer.pull())

    def sent(self) -> None:
        self.stream.read()

    @property
    def complete(self) -> bool:
        return self.answer.complete


class Proxy:
    """Handles requests through the engine that `verifier` checks; any number of threads may call it. `issuer` signs the
    receipts."""

    def __init__(self, verifier: EngineVerifier, issuer: Issuer = UNSIGNED) -> None:
        self._verifier = verifier
        self._issuer = issuer
        looks = dict.fromkeys(("/health", "/v1/health", "/props", "/models", "/v1/models"), ("GET", self._look))
        chats = dict.fromkeys(("/chat/completions", "/v1/chat/completions"), ("POST", self._chat))
        self._routes: Mapping[str, tuple[str, Callable[[Request, Outgoing], RequestOutcome]]] = {
            "/bankml": ("GET", self._bankml),
            "/bankml/verify": ("POST", self._verify),
            **looks,
            **chats,
        }

    def answer(self, request: Request, reply: Reply) -> RequestOutcome:
        """Handles `request` through `reply`. Every failure becomes an error response, or an error event in a stream."""
        return respond(request, Outgoing(reply), self._handle)

    def _handle(self, request: Request, reply: Outgoing) -> RequestOutcome:
        try:
            return self._route(request)(request, reply)
        except EngineErrorResponse as error:
            return _pass_on(error.answer, reply)

    def route(self, request: Request) -> str | None:
        """The path of the table above that `request` is for."""
        return request.path if request.path in self._routes else None

    def state(self) -> ServerState:
        """The current state for the metrics; of the engine only its name is known."""
        return ServerState(ENGINE)

    # ---- routes

    def _route(self, request: Request) -> Callable[[Request, Outgoing], RequestOutcome]:
        if request.path not in self._routes:
            raise NotFound("there is nothing at this path; GET /bankml describes this server")
        method, handler = self._routes[request.path]
        if request.method != method and (request.method, method) != ("HEAD", "GET"):
            allowed = ("GET", "HEAD") if method == "GET" else (method,)
            raise MethodNotAllowed(f"{request.path} answers {' and '.join(allowed)} only", allowed)
        return handler

    def _bankml(self, request: Request, reply: Outgoing) -> RequestOutcome:
        reply.whole(200, json_bytes(self._status()))
        return RequestOutcome(200)

    def _verify(self, request: Request, reply: Outgoing) -> RequestOutcome:
        """Hashes the file now. Raises ModelChanged."""
        rehash, verified = self._verifier.rehash, self._verifier.verified
        rehash.run()
        self._verifier.check_file()
        reply.whole(200, json_bytes(rehashed(model_name(verified), verified.sha256, rehash.verified_at)))
        return RequestOutcome(200)

    def _status(self) -> dict[str, object]:
        verifier = self._verifier
        about = status(verifier.verified, verifier.upstream.shown, verifier.loading, verifier.rehash.verified_at)
        return about | self._issuer.describe()

    def _look(self, request: Request, reply: Outgoing) -> RequestOutcome:
        checked = self._verifier.connection(reply.cancelled)
        answer = checked.props
        if request.path != "/props":
            answer = checked.connection.fetch("GET", _target(request), None, self._verifier.patience(reply.cancelled))
        self._verifier.upstream.give_back(checked.connection)
        return _pass_on(answer, reply)

    def _chat(self, request: Request, reply: Outgoing) -> RequestOutcome:
        self._issuer.require_ready()
        checked = self._verifier.connection(reply.cancelled)
        answer = checked.connection.send(
            "POST",
            _target(request),
            request.body,
            Patience(reply.cancelled, silence=self._verifier.upstream.limits.engine_silence),
        )
        try:
            return self._chat_answer(request, checked, answer, reply)
        finally:
            answer.settle()
            self._verifier.upstream.give_back(checked.connection)

    def _chat_answer(
        self, request: Request, checked: VerifiedConnection, answer: EngineAnswer, reply: Outgoing
    ) -> RequestOutcome:
        if answer.head.status != 200:
            return _pass_on(EngineResponse(answer.head, answer.read_all()), reply)
        tally = Tally(checked.provenance, request.body, request.arrived, issuer=self._issuer)
        transcript = Transcript(tally)
        try:
            failed = self._relayed(answer, tally, transcript, reply)
        except BaseException as error:
            self._record(tally, transcript, "cancelled" if isinstance(error, Cancelled) else "failed")
            raise
        if failed:
            self._record(tally, transcript, "failed")
        counts = transcript.counts
        note = "the engine failed" if failed else transcript.finish
        return RequestOutcome(200, counts.prompt, counts.cached, counts.completion, note, ttft_ms=tally.ttft_ms)

    def _record(self, tally: Tally, transcript: Transcript, outcome: Outcome) -> None:
        """Records an answer that got no receipt, with what is known of it."""
        with suppress(LogUnavailable):  # what ended the answer is the error that is reported
            tally.unfinished(outcome, transcript.counts.prompt, transcript.counts.completion)

    def _relayed(self, answer: EngineAnswer, tally: Tally, transcript: Transcript, reply: Outgoing) -> bool:
        """Sends the answer with its receipt. Returns whether it has an error event of the engine."""
        if answer.head.media_type == EVENT_STREAM:
            stream = EventStream(tally, transcript, self._verifier.upstream.limits.engine_body)
            return self._stream(answer, stream, reply)
        if answer.head.media_type == "application/json":
            body = answer.read_all()
            self._verifier.check_file()
            reply.whole(200, with_receipt(body, transcript), JSON)
            return False
        raise EngineFailed("llama-server's response is neither JSON nor an event stream")

    def _stream(self, answer: EngineAnswer, stream: EventStream, reply: Outgoing) -> bool:
        """Forwards the events. Returns whether one of them is an error event of the engine."""
        events = stream.take(answer.first)
        while not (events or answer.complete):
            events = stream.take(answer.wait())
        if events:
            _write(reply, events)
        if not answer.complete:
            reply.relay(Relay(_Events(answer, stream), self._verifier.upstream.limits.engine_silence))
        self._verifier.check_file()
        _write(reply, stream.end())
        reply.finish()
        return stream.failed


def _target(request: Request) -> str:
    return f"{request.path}?{request.query}" if request.query else request.path


def _pass_on(answer: EngineResponse, reply: Reply) -> RequestOutcome:
    """Forwards a response of the engine; it sends no status but 200 and errors. What a browser could display or run is
    sent as plain text: every response has `X-Content-Type-Options: nosniff`."""
    code = answer.head.status
    if code != 200 and not 400 <= code <= 599:
        raise EngineFailed(f"llama-server responded with status {code}")
    reply.whole(code, answer.body, JSON if answer.head.media_type in ("", "application/json") else TEXT)
    return RequestOutcome(code, note="" if code == 200 else "the engine's error")


def _write(reply: TrackedReply, data: bytes) -> None:
    if not reply.started:
        reply.start(200, EVENT_STREAM)
    if data and not reply.write(data):
        raise Cancelled
