"""Which paths of Ollama's API answer what, and the ones that are refused with a reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bankml.api.ollama import answers, embeddings, making, models
from bankml.errors import NotFound, NotSupported
from bankml.http.exchange import TEXT, Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.registry import Registry
from bankml.library.residency import Library

Json = dict[str, object]
Handler = Callable[[Library, Request, Reply], RequestOutcome]
Methods = Mapping[str, Handler]

BLOBS = "/api/blobs/"
RUNNING = b"bankML is running\nIts page: /bankml/ui\n"

REFUSED = {
    "/api/push": "nothing is uploaded: models stay on this machine",
}
"""What Ollama answers to a POST and bankML does not, and why."""

NO_BLOBS = "no files are taken in over HTTP: pin one with `bankml pin`, and it can be asked for by name"


@dataclass(frozen=True)
class Ollama:
    """Ollama's API over the models of `registry`; a model whose request does not say stays for `keep_alive` seconds."""

    registry: Registry
    keep_alive: float

    def methods_of(self, path: str) -> Methods | None:
        """What `path` answers, by method; None where there is nothing. A path that answers GET answers HEAD."""
        if path in REFUSED:
            return {"POST": _refusing(REFUSED[path])}
        if path.startswith(BLOBS):
            return {"GET": _no_blob, "POST": _refusing(NO_BLOBS)}
        return self._routes().get(path)

    def route(self, path: str) -> str | None:
        """`path` itself where it answers, of a blob's the part before its digest: there are few of these."""
        if path.startswith(BLOBS):
            return BLOBS.rstrip("/")
        return None if self.methods_of(path) is None else path

    def _routes(self) -> Mapping[str, Methods]:
        return {
            "/": {"GET": _running},
            "/api/version": {"GET": _telling(lambda library: models.version())},
            "/api/tags": {"GET": _telling(models.tags)},
            "/api/ps": {"GET": _telling(models.ps)},
            "/api/show": {"POST": _show},
            "/api/pull": {"POST": making.pull},
            "/api/chat": {"POST": self._chat},
            "/api/generate": {"POST": self._generate},
            "/api/embed": {"POST": self._embed},
            "/api/embeddings": {"POST": self._embeddings},
            "/api/create": {"POST": lambda library, request, reply: making.create(self.registry, request, reply)},
            "/api/copy": {"POST": lambda library, request, reply: making.copy(self.registry, request, reply)},
            "/api/delete": {"DELETE": lambda library, request, reply: making.delete(self.registry, request, reply)},
        }

    def _chat(self, library: Library, request: Request, reply: Reply) -> RequestOutcome:
        return answers.chat(library, request, reply, self.keep_alive)

    def _generate(self, library: Library, request: Request, reply: Reply) -> RequestOutcome:
        return answers.generate(library, request, reply, self.keep_alive)

    def _embed(self, library: Library, request: Request, reply: Reply) -> RequestOutcome:
        return embeddings.embed(library, request, reply, self.keep_alive)

    def _embeddings(self, library: Library, request: Request, reply: Reply) -> RequestOutcome:
        return embeddings.embeddings(library, request, reply, self.keep_alive)


def _telling(answer: Callable[[Library], Json]) -> Handler:
    def handler(library: Library, request: Request, reply: Reply) -> RequestOutcome:
        reply.whole(200, json_bytes(answer(library)))
        return RequestOutcome(200)

    return handler


def _show(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    reply.whole(200, json_bytes(models.show(library, request.body)))
    return RequestOutcome(200)


def _running(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    reply.whole(200, RUNNING, TEXT)
    return RequestOutcome(200)


def _refusing(why: str) -> Handler:
    def handler(library: Library, request: Request, reply: Reply) -> RequestOutcome:
        raise NotSupported(f"{request.path}: {why}")

    return handler


def _no_blob(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """To HEAD this says what Ollama's client asks: that the file would have to be sent."""
    raise NotFound(NO_BLOBS)
