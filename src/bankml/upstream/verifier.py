"""Is the engine the one that was looked at, and does it serve the verified file? Asked before every answer.

The engine says which file it serves in `/props`. The answer itself is then asked for over the same connection, so that
it comes from the process that said so, and so that the question of a generation is never sent over a connection that
the engine may just have closed: only questions that change nothing are ever asked twice.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bankml.errors import EngineFailed, ModelChanged, Refused
from bankml.gate.verify import Verified
from bankml.receipt.receipt import Provenance
from bankml.upstream.client import ConnectionLost, EngineConnection, EngineResponse, Patience, Upstream
from bankml.upstream.engine_answer import broken
from bankml.upstream.transcript import engine_object

_HEALTH_POLL = 0.05  # seconds between looks at an engine that is not ready


class EngineErrorResponse(Exception):
    """The engine answered with an error, which is passed on as it is."""

    def __init__(self, answer: EngineResponse) -> None:
        super().__init__(answer.head.status)
        self.answer = answer


@dataclass(frozen=True)
class VerifiedConnection:
    """An open connection to the engine that has just said, over it or the one before, that it serves the file.

    `props` is what it said.
    """

    connection: EngineConnection
    props: EngineResponse
    provenance: Provenance


class EngineVerifier:
    """`alive` raises EngineFailed when the engine is known to have ended."""

    def __init__(self, verified: Verified, upstream: Upstream, alive: Callable[[], None]) -> None:
        self.verified = verified
        self.upstream = upstream
        self._alive = alive
        self._last: tuple[bytes, Provenance] | None = None

    def connection(self, cancelled: Callable[[], bool]) -> VerifiedConnection:
        """A connection to ask over. Whoever takes it gives it back to `upstream` or closes it.

        Raises ModelChanged (503), EngineFailed (502), EngineErrorResponse, Cancelled.
        """
        self.verified.check_unchanged()
        self._alive()
        connection, props = self._props(self.patience(cancelled))
        try:
            provenance = self._provenance(props)
            return VerifiedConnection(connection if connection.open else self.upstream.connect(), props, provenance)
        except BaseException:
            connection.close()
            raise

    def patience(self, cancelled: Callable[[], bool]) -> Patience:
        """For answers that take no generation."""
        return Patience(cancelled, time.monotonic() + self.upstream.limits.engine_answer)

    def _props(self, patience: Patience) -> tuple[EngineConnection, EngineResponse]:
        connection = self.upstream.take()
        try:
            return connection, connection.whole("GET", "/props", None, patience)
        except ConnectionLost:
            if not connection.kept:
                raise
        connection = self.upstream.connect()
        return connection, connection.whole("GET", "/props", None, patience)

    def _provenance(self, props: EngineResponse) -> Provenance:
        if props.head.status != 200:
            raise EngineErrorResponse(props)
        if self._last is None or self._last[0] != props.body:
            self._last = props.body, self._judge(engine_object(props.body))
        return self._last[1]

    def _judge(self, props: dict[str, Any]) -> Provenance:
        path = props.get("model_path")
        if not isinstance(path, str) or not path or "\0" in path:
            raise broken("/props names no model_path")
        name = self.verified.name
        if os.path.realpath(path) != self.verified.path:
            raise ModelChanged(f"llama-server at {self.upstream.shown} does not serve the verified file {name}")
        build = props.get("build_info")
        engine = f"llama.cpp {build}" if isinstance(build, str) and build else "llama.cpp"
        return Provenance(engine, self.verified.sha256, self.verified.verdict.kind)


def wait_until_healthy(upstream: Upstream, seconds: float, alive: Callable[[], None]) -> None:
    """Returns when `/health` answers 200. Raises what `alive` raises at once, EngineFailed after `seconds`."""
    until = time.monotonic() + seconds
    patience = Patience(lambda: False, until)
    while True:
        alive()
        try:
            connection = upstream.connect()
            answer = connection.whole("GET", "/health", None, patience)
            last = f"its /health answers {answer.head.status}"
            upstream.give_back(connection)
            if answer.head.status == 200:
                return
        except EngineFailed as error:
            last = error.message
        if time.monotonic() > until:
            raise EngineFailed(f"llama-server at {upstream.shown} was not ready within {seconds:g} s: {last}")
        time.sleep(_HEALTH_POLL)


def require_same_file(vouch: EngineVerifier) -> Provenance:
    """The first check, before anything is served. Raises Refused where the engine serves another file or tells none."""
    try:
        vouched = vouch.connection(lambda: False)
    except EngineErrorResponse as error:
        raise Refused(
            f"llama-server at {vouch.upstream.shown} answers /props with {error.answer.head.status}"
        ) from None
    vouch.upstream.give_back(vouched.connection)
    return vouched.provenance
