"""A server without sockets, and replays of its answers by another library, as a fresh process has it."""

import json
import time

from bankml.api.routes import Serving, build_application
from bankml.gate.verify import verify
from bankml.http.collected_reply import CollectedReply
from bankml.http.exchange import Request
from bankml.library.load import LoadOptions
from bankml.replay.opening import open_for
from bankml.replay.replay import read_evidence, replay
from bankml.replay.route import PATH, handle
from bankml.replay.verdict import NotReplayable, ReplayVerdict


class Served:
    """One verified file with an application; `environment` has the BANKML_ variables."""

    def __init__(self, verified, environment=None, parallel=2, n_ctx=1024, **serving):
        self.verified = verified
        self.registry = serving.get("registry")
        environment = {"BANKML_THREADS": "2"} | (environment or {})
        options = LoadOptions(n_ctx, None, environment, parallel=parallel)
        more = {PATH: {"POST": handle}}
        self.application = build_application(self.again(), options, Serving(any_model=True, **serving), more)

    def again(self):
        return verify(self.verified.path, self.verified.fork_path)

    def ask(self, path, body, address="gateway"):
        """The bytes of a request and of its response."""
        sent = json.dumps(body).encode()
        reply = CollectedReply(lambda: False)
        self.application.answer(Request("POST", path, "", {}, sent, address, time.monotonic()), reply)
        return sent, reply.body

    def verdict(self, request, answer, width=8, environment=None):
        """What a replay says; the name of a precondition that fails is its `precondition`."""
        try:
            evidence = read_evidence(request, answer)
            library = open_for(
                evidence.record, self.again(), self.registry, environment={"BANKML_THREADS": "1"} | (environment or {})
            )
            return replay(evidence, library, width=width)
        except NotReplayable as error:
            return ReplayVerdict("not replayable", (error.message,), precondition=error.name)
