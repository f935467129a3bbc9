"""OpenAI's own client against the application, over a loopback socket.

The HTTP server here is the standard library's: what is tried is what the client makes of the answers.
"""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai
import pytest

from bankml.http.exchange import Request
from tests.api.api_toys import toy_application


class SocketReply:
    def __init__(self, handler):
        self._handler = handler

    def whole(self, status, body, content_type="application/json; charset=utf-8", headers=()):
        self.start(status, content_type)
        self.write(body)

    def start(self, status, content_type, ping_interval=None, headers=()):
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", content_type)
        self._handler.send_header("Connection", "close")
        self._handler.end_headers()

    def write(self, data):
        self._handler.wfile.write(data)
        return True

    def finish(self):
        pass

    def cancelled(self):
        return False


@pytest.fixture
def client():
    application = toy_application("Oslo is å 🙂.")

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, "", {}, body, "gateway", time.monotonic())
            application.answer(request, SocketReply(self))

        do_GET = do_POST = answer

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with openai.OpenAI(
        base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none", max_retries=0, timeout=20
    ) as made:
        yield made
    server.shutdown()
    server.server_close()
    thread.join(5)


MESSAGES = [{"role": "user", "content": "Capital of Norway?"}]


def test_the_same_text_streamed_and_not(client):
    model = client.models.list().data[0].id
    plain = client.chat.completions.create(model=model, messages=MESSAGES)
    assert plain.choices[0].message.content == "Oslo is å 🙂."
    assert (plain.choices[0].finish_reason, plain.usage.completion_tokens) == ("stop", 17)
    assert plain.usage.prompt_tokens_details.cached_tokens == 0

    stream = client.chat.completions.create(
        model=model, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    text, finish, usage, receipts = "", None, None, []
    for chunk in stream:
        if "bankml_receipt" in chunk.model_extra:
            receipts.append(chunk.model_extra["bankml_receipt"])
        usage = chunk.usage or usage
        for choice in chunk.choices or []:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    assert (text, finish, usage.completion_tokens) == (plain.choices[0].message.content, "stop", 17)
    assert usage.prompt_tokens_details.cached_tokens > 0
    assert [r["response_sha256"] for r in receipts] == [plain.model_extra["bankml_receipt"]["response_sha256"]]


def test_the_usual_loop_passes_over_the_receipt(client):
    stream = client.chat.completions.create(model="toy-1m", messages=MESSAGES, stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in stream if c.choices) == "Oslo is å 🙂."


def test_the_clients_own_accumulation(client):
    with client.chat.completions.stream(model="toy-1m", messages=MESSAGES) as stream:
        deltas = "".join(event.delta for event in stream if event.type == "content.delta")
        assert deltas == stream.get_final_completion().choices[0].message.content == "Oslo is å 🙂."


def test_refusals_are_the_clients_own_errors(client):
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="toy-1m", messages=MESSAGES, n=2)
    assert bad.value.body == {
        "code": 400,
        "message": "Field 'n': Value must be between 1 <= value <= 1, but got 2",
        "type": "invalid_request_error",
    }
    with pytest.raises(openai.NotFoundError, match="unknown model 'gpt-4'"):
        client.chat.completions.create(model="gpt-4", messages=MESSAGES, stream=True)
