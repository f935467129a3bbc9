"""Checks before every response that llama-server serves the verified file, and no other file beside it.

llama-server names its file in `/props`. The request is then sent over the same connection, so that the response comes
from the process that named it, and so that a generation is never requested over a connection that llama-server may just
have closed: only requests without side effects are ever repeated. What else it has loaded changes its answers and is
not pinned, so a multimodal projector (`modalities` of `/props`) and LoRA adapters (`/lora-adapters`) are refused.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bankml.errors import EngineFailed, ModelChanged, PinMismatch, Refused
from bankml.gate.verify import Verified
from bankml.receipt.receipt import Provenance
from bankml.upstream.client import ConnectionLost, EngineConnection, EngineResponse, Patience, Upstream
from bankml.upstream.engine_answer import broken
from bankml.upstream.rehash import FileRehash
from bankml.upstream.status import Loading, engine_name
from bankml.upstream.transcript import engine_object

_HEALTH_POLL = 0.05  # seconds between requests to an engine that is not ready


class EngineErrorResponse(Exception):
    """The engine responded with an error, which is passed on unchanged."""

    def __init__(self, answer: EngineResponse) -> None:
        super().__init__(answer.head.status)
        self.answer = answer


@dataclass(frozen=True)
class VerifiedConnection:
    """An open connection to an engine that has just named the verified file, over it or the one before.

    `props` is its response.
    """

    connection: EngineConnection
    props: EngineResponse
    provenance: Provenance


class EngineVerifier:
    """`alive` raises EngineFailed when the engine is known to have ended; `loading` is how it has the file."""

    def __init__(
        self,
        verified: Verified,
        upstream: Upstream,
        alive: Callable[[], None],
        loading: Loading = "unknown",
        rehash: FileRehash | None = None,
    ) -> None:
        self.verified = verified
        self.upstream = upstream
        self.loading = loading
        self.rehash = rehash or FileRehash(verified)
        self._alive = alive
        self._last: tuple[bytes, Provenance] | None = None

    def connection(self, cancelled: Callable[[], bool]) -> VerifiedConnection:
        """A connection for one request. The caller gives it back to `upstream` or closes it.

        Raises ModelChanged (503), Refused (503), EngineFailed (502), EngineErrorResponse, Cancelled.
        """
        self.check_file()
        self._alive()
        patience = self.patience(cancelled)
        connection, props = self._props(patience)
        try:
            provenance = self._provenance(props)
            if not connection.open:
                connection = self.upstream.connect()
            if not connection.adapters_checked:
                self._check_adapters(connection, patience)
            return VerifiedConnection(connection if connection.open else self.upstream.connect(), props, provenance)
        except BaseException:
            connection.close()
            raise

    def check_file(self) -> None:
        """Raises ModelChanged where the file's identity is another one, or a hash was. Before a response and again
        before its receipt."""
        self.verified.check_unchanged()
        self.rehash.check()

    def patience(self, cancelled: Callable[[], bool]) -> Patience:
        """How long to wait for a response without generation."""
        return Patience(cancelled, time.monotonic() + self.upstream.limits.engine_answer)

    def _props(self, patience: Patience) -> tuple[EngineConnection, EngineResponse]:
        connection = self.upstream.take()
        try:
            return connection, connection.fetch("GET", "/props", None, patience)
        except ConnectionLost:
            if not connection.kept:
                raise
        connection = self.upstream.connect()
        return connection, connection.fetch("GET", "/props", None, patience)

    def _provenance(self, props: EngineResponse) -> Provenance:
        if props.head.status != 200:
            raise EngineErrorResponse(props)
        if self._last is None or self._last[0] != props.body:
            self._last = props.body, self._check_props(engine_object(props.body))
        return self._last[1]

    def _check_props(self, props: dict[str, Any]) -> Provenance:
        path = props.get("model_path")
        if not isinstance(path, str) or not path or "\0" in path:
            raise broken("/props names no model_path")
        name = self.verified.name
        if os.path.realpath(path) != self.verified.path:
            raise ModelChanged(f"llama-server at {self.upstream.shown} does not serve the verified file {name}")
        modalities = props.get("modalities")
        if isinstance(modalities, dict) and (loaded := [kind for kind, on in modalities.items() if on]):
            raise PinMismatch(
                f"llama-server at {self.upstream.shown} has loaded a multimodal projector ({', '.join(loaded)}), which "
                "is not pinned: start it without --mmproj"
            )
        engine = engine_name(props.get("build_info"), self.loading)
        return Provenance(engine, self.verified.sha256, self.verified.verdict.kind)

    def _check_adapters(self, connection: EngineConnection, patience: Patience) -> None:
        """Adapters are loaded when llama-server starts, so one question a connection is enough. Raises PinMismatch."""
        answer = connection.fetch("GET", "/lora-adapters", None, patience)
        connection.adapters_checked = True
        if answer.head.status == 200 and answer.body.strip() != b"[]":
            raise PinMismatch(
                f"llama-server at {self.upstream.shown} has loaded LoRA adapters, which are not pinned: start it "
                "without --lora"
            )


def wait_until_healthy(upstream: Upstream, seconds: float, alive: Callable[[], None]) -> None:
    """Returns when `/health` responds with 200. Raises what `alive` raises at once, EngineFailed after `seconds`."""
    until = time.monotonic() + seconds
    patience = Patience(lambda: False, until)
    while True:
        alive()
        try:
            connection = upstream.connect()
            answer = connection.fetch("GET", "/health", None, patience)
            last = f"its /health responds with {answer.head.status}"
            upstream.give_back(connection)
            if answer.head.status == 200:
                return
        except EngineFailed as error:
            last = error.message
        if time.monotonic() > until:
            raise EngineFailed(f"llama-server at {upstream.shown} was not ready within {seconds:g} s: {last}")
        time.sleep(_HEALTH_POLL)


def require_same_file(verifier: EngineVerifier) -> Provenance:
    """The first check, before anything is served. Raises Refused where the engine serves another file or names none."""
    try:
        checked = verifier.connection(lambda: False)
    except EngineErrorResponse as error:
        raise Refused(
            f"llama-server at {verifier.upstream.shown} responds to /props with {error.answer.head.status}"
        ) from None
    verifier.upstream.give_back(checked.connection)
    return checked.provenance
