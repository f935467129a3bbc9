"""A stand-in for llama-server: replays bytes over real sockets, faults included.

    python -m tests.upstream.standin MODEL_PATH [--port PORT] [--pause SECONDS]

The answers are llama-server b11192's own as they stood on the wire (recorded once, then shortened). Like it, the
stand-in closes a connection after 100 requests, announcing it, and one chunk may hold several events.
"""

import argparse
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 %s\r\nServer: llama.cpp\r\nAccess-Control-Allow-Origin: \r\n"
JSON = b"Content-Type: application/json; charset=utf-8\r\n"
KEPT = b"Keep-Alive: timeout=5, max=100\r\n\r\n"
LAST = b"Connection: close\r\n\r\n"
COMMON = b'"created":1795992639,"id":"chatcmpl-u3bV8Z4ZfumEG55Dzaax09P6","model":"m","system_fingerprint":"b0-unknown"'
TIMINGS = b'"timings":{"cache_n":14,"prompt_n":1,"prompt_ms":8.146,"predicted_n":4,"predicted_ms":17.75}'
USAGE = (
    b'"usage":{"completion_tokens":4,"prompt_tokens":15,"total_tokens":19,"prompt_tokens_details":{"cached_tokens":14}}'
)
TEXT = " å这笔 condensed初めて"
PIECES = (" å", "这笔", " condensed", "初めて")
DONE = b"data: [DONE]\n\n"


def delta(content: str | None, finish: str | None = None, further: bytes = b"") -> bytes:
    """One event of a stream, as llama-server writes it."""
    inside = {} if content is None else {"content": content}
    choice = json.dumps({"finish_reason": finish, "index": 0, "delta": inside}, ensure_ascii=False).encode()
    return b'data: {"choices":[%s],%s,"object":"chat.completion.chunk"%s}\n\n' % (choice, COMMON, further)


ROLE = (
    b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],%s}\n\n' % COMMON
)
STREAM = (ROLE + delta(PIECES[0]), *(delta(piece) for piece in PIECES[1:]), delta(None, "length", b"," + TIMINGS), DONE)
"""One chunk each."""
WHOLE = (
    b'{"choices":[{"finish_reason":"length","index":0,"message":{"role":"assistant","content":"%s"}}],%s,'
    b'"object":"chat.completion",%s,%s}' % (TEXT.encode(), COMMON, USAGE, TIMINGS)
)
MODELS = b'{"object":"list","data":[{"id":"m","object":"model","owned_by":"llamacpp"}]}'


def answer(body: bytes, status: bytes = b"200 OK", end: bytes = KEPT, kind: bytes = JSON) -> bytes:
    return (HEAD % status) + kind + b"Content-Length: %d\r\n" % len(body) + end + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


STREAM_HEAD = (HEAD % b"200 OK") + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n" + KEPT


def streamed(parts: Iterable[bytes] = STREAM) -> bytes:
    """A stream's bytes on the wire."""
    return STREAM_HEAD + b"".join(map(chunk, parts)) + chunk(b"")


def props(path: str, further: dict | None = None) -> bytes:
    template = "{%- for message in messages %}{{ message.role }}{%- endfor %}" * 60  # about as long as a real one
    return json.dumps(
        {
            "total_slots": 1,
            "model_path": path,
            "modalities": {"vision": False, "audio": False},
            "chat_template": template,
            "build_info": "b11192-0",
            **(further or {}),
        }
    ).encode()


@dataclass
class Asked:
    """A request as it came."""

    line: bytes
    headers: dict[bytes, bytes]
    body: bytes


Write = Callable[[bytes], None]
Chat = bytes | Callable[[Asked, Write], None]


@dataclass
class StandIn:
    """`chat` is what a chat is answered with, bytes or a function that writes; None: as the request's `stream` says.

    A function that raises OSError (what writing to a lost connection raises) ends the connection.
    """

    model_path: str
    chat: Chat | None = None
    health: bytes = answer(b'{"status":"ok"}')
    pause: float = 0.0
    closes_after: int = 100
    adapters: bytes = b"[]"
    further_props: dict = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    responding: threading.Event = field(default_factory=threading.Event)
    """Set while it responds; clear: it reads requests and sends nothing."""
    gone: threading.Event = field(default_factory=threading.Event)
    """A connection was lost while its answer was written."""

    def start(self, port: int = 0) -> tuple[str, int]:
        self.responding.set()
        self._listening = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()
        name: tuple[str, int] = self._listening.getsockname()
        return name

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def chats(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.line.startswith(b"POST")]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as reading, contextlib.suppress(OSError):
            for number in range(1, self.closes_after + 1):
                asked = _read(reading)
                if asked is None:
                    return
                self.asked.append(asked)
                last = number == self.closes_after
                write = _closing(client.sendall) if last else client.sendall
                try:
                    self._answer(asked, write)
                except OSError:
                    self.gone.set()
                    return

    def _answer(self, asked: Asked, write: Write) -> None:
        self.responding.wait()
        if b" /props " in asked.line:
            write(answer(props(self.model_path, self.further_props)))
        elif b" /lora-adapters " in asked.line:
            write(answer(self.adapters))
        elif b" /health " in asked.line:
            write(self.health)
        elif b" /v1/models " in asked.line:
            write(answer(MODELS))
        elif not asked.line.startswith(b"POST"):
            write(
                answer(b'{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}', b"404 Not Found")
            )
        elif callable(self.chat):
            self.chat(asked, write)
        elif self.chat is not None:
            write(self.chat)
        elif json.loads(asked.body).get("stream"):
            self._stream(write)
        else:
            write(answer(WHOLE))

    def _stream(self, write: Write) -> None:
        write(STREAM_HEAD)
        for part in STREAM:
            time.sleep(self.pause)
            write(chunk(part))
        write(chunk(b""))


def _read(reading) -> Asked | None:
    line = reading.readline().rstrip()
    if not line:
        return None
    headers = {}
    while field_line := reading.readline().rstrip():
        name, _, value = field_line.partition(b":")
        headers[name.lower()] = value.strip()
    return Asked(line, headers, reading.read(int(headers.get(b"content-length", 0))))


def _closing(write: Write) -> Write:
    return lambda data: write(data.replace(KEPT, LAST, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_path")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.0)
    options = parser.parse_args()
    print(StandIn(options.model_path, pause=options.pause).start(options.port)[1], flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
