"""`respond`: what an application raises becomes one response, or one event of a stream that has begun."""

import json

import pytest

from bankml.http.exchange import EVENT_STREAM, NDJSON, Request
from bankml.http.tracked_reply import TrackedReply, respond
from tests.api.api_toys import MemoryReply

REQUEST = Request("POST", "/v1/chat/completions", "", {}, b"{}", "gateway", 0.0)


def out_of_memory(request, reply):
    raise MemoryError


def test_memory_error_is_a_503_with_one_sentence():
    reply = MemoryReply()
    outcome = respond(REQUEST, TrackedReply(reply), out_of_memory)
    assert (outcome.status, reply.status, reply.error["type"]) == (503, 503, "unavailable_error")
    assert reply.error["message"].startswith("there is not enough memory for this request")


@pytest.mark.parametrize("kind", [EVENT_STREAM, NDJSON])
def test_memory_error_ends_a_stream_with_an_error(kind):
    reply = MemoryReply()

    def handle(request, tracked):
        tracked.start(200, kind)
        raise MemoryError

    assert respond(REQUEST, TrackedReply(reply), handle).status == 200 and reply.finished
    assert json.loads(reply.body.decode().removeprefix("data: "))["error"]["code"] == 503
