"""`POST /v1/chat/completions/control`: acts on an answer that is being generated."""

from bankml.api.reading import fields
from bankml.api.reading.json_body import read_object
from bankml.errors import RequestError
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.residency import Library

Json = dict[str, object]


def control(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """Ends the thought of a chat that was requested with `reasoning_control`."""
    body = read_object(request.body)
    id_, action = fields.string(body, "id"), fields.string(body, "action")
    if not id_:
        raise RequestError("missing completion id")
    if action != "reasoning_end":
        raise RequestError("unknown control action")
    problem = library.live.end_thought(id_)
    answer: Json = {"success": not problem} | ({"message": problem} if problem else {})
    reply.whole(200, json_bytes(answer))
    return RequestOutcome(200)
