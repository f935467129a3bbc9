"""Asking a server over a loopback socket, and waiting until it is there."""

import http.client
import json
import socket
import subprocess
import time


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def exchange(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, str, bytes]:
    """Status, content type and body of one answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type", ""), response.read()
    finally:
        connection.close()


def ask(port: int, path: str, body: object) -> tuple[int, bytes, bool]:
    """Status and body of the answer to JSON, and whether it is a stream of events."""
    status, kind, data = exchange(port, "POST", path, json.dumps(body).encode())
    return status, data, kind.startswith("text/event-stream")


def waiting(port: int, process: subprocess.Popen, seconds: float = 60) -> None:
    """Returns when the server answers /health; raises RuntimeError when its process ends or time runs out."""
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        try:
            if exchange(port, "GET", "/health")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server did not start (exit status {process.poll()})")
