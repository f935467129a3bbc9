"""`POST /bankml/replay`: a running server computes an answer again that it, or another server, has given."""

import copy

from bankml.api.reading import fields
from bankml.api.reading.json_body import read_object
from bankml.errors import RequestError
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.residency import Library
from bankml.replay.replay import WIDTH, Evidence, read_evidence, replay
from bankml.replay.verdict import NotReplayable, ReplayVerdict
from bankml.text.special_content import CONTENT_SPECIAL

PATH = "/bankml/replay"


def handle(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """The body has the bodies of both as text: `request` and `answer`. Answers with the verdict; requests to the model
    wait meanwhile. Raises RequestError, Busy."""
    body = read_object(request.body)
    both = {name: fields.string(body, name) for name in ("request", "answer")}
    for name, text in both.items():
        if text is None:
            raise RequestError(f"Field '{name}': expected the body of the {name} as a string")
    try:
        evidence = read_evidence(str(both["request"]).encode(), str(both["answer"]).encode())
        verdict = _computed(library, evidence, reply)
    except NotReplayable as error:
        verdict = ReplayVerdict("not replayable", (error.message,), precondition=error.name)
    reply.whole(200, json_bytes(verdict.to_json()))
    return RequestOutcome(200, note=verdict.result)


def _computed(library: Library, evidence: Evidence, reply: Reply) -> ReplayVerdict:
    found = (one for one in library.references() if one.source.sha256 == evidence.model_sha256)
    reference = next(found, None)
    if reference is None:
        raise NotReplayable("model", f"this server has no model with the sha256 {evidence.model_sha256}")
    template = evidence.record.template
    with library.turn(reply.cancelled):
        resident = copy.copy(library.ready(reference))
        if template is not None:
            resident.reasoning = template.reasoning
            special = next((one for one in CONTENT_SPECIAL if one == template.content_special), None)
            resident.content_special = special or resident.content_special
        width = min(WIDTH, len(resident.engine.slots))
        return replay(evidence, library, resident=resident, width=width, cancelled=reply.cancelled)
