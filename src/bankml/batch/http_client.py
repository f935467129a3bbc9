"""A client of running servers: one connection for each thread, kept open, which another thread can interrupt."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from bankml.errors import UsageError

MOST_BYTES = 256 << 20
"""Of a response: one with a thousand probabilities per token is larger than any request."""

SILENCE_S = 3600.0
"""Seconds without a byte after which a server is given up."""

CONNECT_S = 10.0


class ServerClient:
    """Requests to the server at `url`, http://HOST:PORT. `api_key` is the key that it requires."""

    def __init__(self, url: str, api_key: str | None = None) -> None:
        """Raises UsageError for another kind of address."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme != "http" or not parts.hostname or parts.query or parts.path not in ("", "/"):
            raise UsageError(f"--server {url} is not an address like http://127.0.0.1:18093")
        self.url = url.rstrip("/")
        self._address = (parts.hostname, port or 80)
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._own = threading.local()
        self._open: set[http.client.HTTPConnection] = set()
        self._lock = threading.Lock()
        self._interrupted = False

    def get(self, path: str) -> Mapping[str, Any]:
        """A JSON object. Raises OSError, ValueError for anything else."""
        status, data = self.send("GET", path, None)
        value = json.loads(data)
        if status != 200 or not isinstance(value, dict):
            raise ValueError(f"GET {path} is answered with status {status}")
        return value

    def send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Status and body of the response. Raises OSError."""
        kept = getattr(self._own, "connection", None) is not None
        try:
            return self._exchange(method, path, body)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            if not kept or self._interrupted:
                raise
            return self._exchange(method, path, body)  # the server closed the connection while it was idle

    def interrupt(self) -> None:
        """Ends every exchange: the threads in it get an OSError."""
        with self._lock:
            self._interrupted = True
            for connection in self._open:
                if connection.sock is not None:
                    with suppress(OSError):
                        connection.sock.shutdown(socket.SHUT_RDWR)

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            connection.request(method, path, body, self._headers)
            response = connection.getresponse()
            data = response.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise OSError(f"its response is longer than {MOST_BYTES} bytes")
        except BaseException as error:
            self._forget(connection)
            if isinstance(error, http.client.HTTPException) and not isinstance(error, OSError):
                raise OSError(f"its response is no HTTP: {type(error).__name__}") from None
            raise
        if response.will_close:
            self._forget(connection)
        return response.status, data

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            found = http.client.HTTPConnection(*self._address, timeout=CONNECT_S)
            found.connect()
            found.sock.settimeout(SILENCE_S)
            found.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                if self._interrupted:
                    found.close()
                    raise OSError("interrupted")
                self._open.add(found)
            self._own.connection = found
        return found

    def _forget(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.close()
        self._own.connection = None
