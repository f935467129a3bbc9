"""A Reply that keeps the response, for answers that go to no socket."""

from collections.abc import Callable

from bankml.http.exchange import JSON, Headers


class CollectedReply:
    """The response's `status` and `body`, streamed or not. It is cancelled when `cancelled()` is true."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self.status = 0
        self.body = b""
        self.cancelled = cancelled

    def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        self.status, self.body = status, body

    def start(self, status: int, content_type: str, ping_interval: float | None = None, headers: Headers = ()) -> None:
        self.status, self.body = status, b""

    def write(self, data: bytes) -> bool:
        self.body += data
        return True

    def finish(self) -> None:
        """Nothing is left to send."""
