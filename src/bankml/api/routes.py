"""Which address answers which path and method, and what every refusal looks like."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from bankml.api import descriptions, status, text_endpoints
from bankml.api.control import control
from bankml.api.embeddings.reranking import rerank
from bankml.api.embeddings.routes import embeddings, openai_embeddings
from bankml.api.known_paths import unknown_path
from bankml.api.ollama.durations import FOREVER, KEEP_ALIVE
from bankml.api.ollama.routes import Ollama
from bankml.api.openai_routes import CALLS, generating
from bankml.api.reading import fields
from bankml.api.reading.json_body import read_object
from bankml.api.slots import PREFIX, slot_action, slots
from bankml.engine.slot_folder import SlotFolder
from bankml.errors import MethodNotAllowed
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes, rehashed
from bankml.http.tracked_reply import TrackedReply, respond
from bankml.library.reference import ModelLayer, PinnedFile
from bankml.library.registry import Registry
from bankml.library.residency import FOR_GOOD, Library
from bankml.library.resident import Resident
from bankml.measure.prometheus import ServerState
from bankml.receipt.issuer import UNSIGNED, Issuer

if TYPE_CHECKING:
    from bankml.gate.verify import Verified
    from bankml.library.load import LoadOptions

Json = dict[str, object]
Body = Mapping[str, Any]
Handler = Callable[[Library, Request, Reply], RequestOutcome]
Methods = Mapping[str, Handler]
NO_MORE: Mapping[str, Methods] = {}


def json_get(answer: Callable[[Library], Json]) -> Handler:
    """A handler for a question without a body, which no model is asked."""

    def handler(library: Library, request: Request, reply: Reply) -> RequestOutcome:
        reply.whole(200, json_bytes(answer(library)))
        return RequestOutcome(200)

    return handler


def model_get(answer: Callable[[Library, Resident], Json]) -> Handler:
    """A handler for a question without a body to the resident model, or to the startup model where none is."""

    def handler(library: Library, request: Request, reply: Reply) -> RequestOutcome:
        reply.whole(200, json_bytes(answer(library, library.look(reply.cancelled))))
        return RequestOutcome(200)

    return handler


def model_post(answer: Callable[[Resident, ModelLayer | None, Body], Json]) -> Handler:
    """A handler for a JSON body that a model's tokenizer and template answer: those of its `model`, or of the loaded
    one."""

    def handler(library: Library, request: Request, reply: Reply) -> RequestOutcome:
        body = read_object(request.body)
        name = fields.string(body, "model")
        reference = None if name is None else library.resolve(name)
        resident = library.look(reply.cancelled, reference)
        resident.check_unchanged()
        reply.whole(200, json_bytes(answer(resident, None if reference is None else reference.layer, body)))
        return RequestOutcome(200)

    return handler


def one_model(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`GET /v1/models/{id}`: the entry that the list has for the model of this name."""
    name = unquote(request.path.partition("/models/")[2])
    reference = library.resolve(name)
    reply.whole(200, json_bytes(descriptions.model(library, reference)))
    return RequestOutcome(200)


def list_models(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """What has a name, and of the model in memory more. Nothing is waited for or loaded: clients poll this."""
    reply.whole(200, json_bytes(descriptions.models(library, library.resident)))
    return RequestOutcome(200)


def verify_file(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """Hashes the file of the model in memory again. Raises ModelChanged. The weights in memory are those that were
    verified, whatever becomes of the file."""
    resident, moment = library.look(reply.cancelled), time.time()
    resident.verified.rehash()
    reply.whole(200, json_bytes(rehashed(resident.name, resident.provenance.model_sha256, moment)))
    return RequestOutcome(200)


BOTH: Mapping[str, Methods] = {
    "/bankml": {"GET": json_get(status.bankml)},
    "/health": {"GET": json_get(descriptions.health)},
    "/v1/health": {"GET": json_get(descriptions.health)},
    "/props": {"GET": model_get(descriptions.props)},
    "/models": {"GET": list_models},
    "/v1/models": {"GET": list_models},
    **{path: {"POST": generating(call)} for path, call in CALLS.items()},
    "/v1/chat/completions/control": {"POST": control},
    "/embedding": {"POST": embeddings},
    "/embeddings": {"POST": embeddings},
    "/v1/embeddings": {"POST": openai_embeddings},
    "/rerank": {"POST": rerank},
    "/reranking": {"POST": rerank},
    "/v1/rerank": {"POST": rerank},
    "/v1/reranking": {"POST": rerank},
    "/chat/completions/input_tokens": {"POST": model_post(text_endpoints.chat_tokens)},
    "/v1/chat/completions/input_tokens": {"POST": model_post(text_endpoints.chat_tokens)},
    "/responses/input_tokens": {"POST": model_post(text_endpoints.responses_tokens)},
    "/v1/responses/input_tokens": {"POST": model_post(text_endpoints.responses_tokens)},
    "/v1/messages/count_tokens": {"POST": model_post(text_endpoints.messages_tokens)},
    "/tokenize": {"POST": model_post(text_endpoints.tokenize)},
    "/detokenize": {"POST": model_post(text_endpoints.detokenize)},
    "/apply-template": {"POST": model_post(text_endpoints.apply_template)},
}
"""What both addresses answer. A path that answers GET answers HEAD."""

MODEL_PREFIXES = ("/v1/models/", "/models/")

ENGINE: Mapping[str, Methods] = {"/slots": {"GET": slots}}
"""What the engine address alone answers, besides the slots' own paths."""

ROUTES: Mapping[Literal["gateway", "engine"], Mapping[str, Methods]] = {
    "gateway": {**BOTH, "/bankml/verify": {"POST": verify_file}},
    "engine": {**BOTH, **ENGINE},
}


def methods_of(
    request: Request, slot_folder: SlotFolder | None, ollama: Ollama | None, more: Mapping[str, Methods]
) -> Methods | None:
    """What the path of a request answers, by method; None where there is nothing. Ollama's API is on the gateway
    address alone, and so are the paths of `more`."""
    if request.address == "gateway" and request.path in more:
        return more[request.path]
    if request.address == "engine" and request.path.startswith(PREFIX):
        return {"POST": slot_action(slot_folder)}
    if request.path.startswith(MODEL_PREFIXES) and not request.path.endswith("/"):
        return {"GET": one_model}
    found = ROUTES[request.address].get(request.path)
    if found is None and ollama is not None and request.address == "gateway":
        return ollama.methods_of(request.path)
    return found


def find(
    request: Request,
    slot_folder: SlotFolder | None = None,
    ollama: Ollama | None = None,
    more: Mapping[str, Methods] = NO_MORE,
) -> Handler:
    """The handler of a request. Raises NotFound or MethodNotAllowed."""
    methods = methods_of(request, slot_folder, ollama, more)
    if methods is None:
        raise unknown_path(request.path)
    handler = methods.get("GET" if request.method == "HEAD" else request.method)
    if handler is None:
        raise MethodNotAllowed(f"{request.path} answers {' and '.join(allowed(methods))} only", allowed(methods))
    return handler


def allowed(methods: Methods) -> list[str]:
    return [*methods, *(["HEAD"] if "GET" in methods else [])]


@dataclass(frozen=True)
class Serving:
    """What a server serves besides the model it starts with.

    `slot_dir` is the folder of slot files, None if there is none; `slots_trust` accepts files of other servers.
    `registry` is the folder whose models may be requested by name; None: the startup model alone; `any_model`: every
    other name means the startup model too. `keep_alive` is how long a model stays that was requested through Ollama's
    API, in seconds (ollama.durations.FOREVER: for good). `queue_limit`: the most requests that wait for a model.
    `engine_address` (HOST:PORT) is what `GET /bankml` names as `upstream`. `issuer` signs the receipts.
    """

    slot_dir: str | None = None
    slots_trust: bool = False
    registry: str | None = None
    any_model: bool = False
    keep_alive: float = KEEP_ALIVE
    queue_limit: int | None = None
    engine_address: str | None = None
    issuer: Issuer = UNSIGNED


def build_application(
    verified: "Verified", options: "LoadOptions", serving: Serving, more: Mapping[str, Methods] = NO_MORE
) -> "NativeApplication":
    """The application that answers with the verified file, loaded now; `more` are paths of the gateway address besides
    its own. Raises Refused for an unsupported model, UsageError for a folder that is none."""
    from bankml.library.load import open_library

    slot_folder = None if serving.slot_dir is None else SlotFolder(serving.slot_dir, serving.slots_trust)
    known = Registry(serving.registry, PinnedFile.of(verified), any_model=serving.any_model)
    keep = FOR_GOOD if serving.keep_alive == FOREVER else serving.keep_alive
    library = open_library(verified, options, known, keep, serving.queue_limit)
    library.engine_address = serving.engine_address
    library.issuer = serving.issuer
    library.start_reaper()
    return NativeApplication(library, slot_folder, Ollama(known, serving.keep_alive), more)


class NativeApplication:
    """Answers requests with the models of `library`; any number of threads may call it."""

    def __init__(
        self,
        library: Library,
        slot_folder: SlotFolder | None = None,
        ollama: Ollama | None = None,
        more: Mapping[str, Methods] = NO_MORE,
    ) -> None:
        self._library = library
        self._more = more
        self._slot_folder = slot_folder
        self._ollama = ollama

    def answer(self, request: Request, reply: Reply) -> RequestOutcome:
        """Answers `request` through `reply`. Whatever goes wrong becomes an answer, or an event once one has begun."""
        return respond(request, TrackedReply(reply), self._handle)

    @property
    def parallel(self) -> int:
        """How many requests are answered at once."""
        return self._library.parallel

    def route(self, request: Request) -> str | None:
        """The path of the tables that `request` asks for, of a slot's own path the part before its number."""
        if request.path in ROUTES[request.address] or (request.address == "gateway" and request.path in self._more):
            return request.path
        if request.path.startswith(MODEL_PREFIXES):
            return MODEL_PREFIXES[0].rstrip("/")
        if request.address == "engine":
            return PREFIX.rstrip("/") if request.path.startswith(PREFIX) else None
        return None if self._ollama is None else self._ollama.route(request.path)

    def state(self) -> ServerState:
        """What is true of it at this moment, for its metrics."""
        resident = self._library.resident
        cache = None if resident is None else resident.engine.slots.prompt_cache
        return ServerState(
            engine=self._library.last.provenance.engine,
            waiting=self._library.waiting,
            processing=self._library.processing,
            model_bytes=0 if resident is None else resident.verified.identity.size,
            cache_bytes=0 if cache is None else cache.nbytes,
            kv_bytes=0 if resident is None else resident.engine.slots.kv_bytes,
            decode_steps={} if resident is None else dict(resident.engine.scheduler.batch_sizes),
        )

    def _handle(self, request: Request, reply: TrackedReply) -> RequestOutcome:
        return find(request, self._slot_folder, self._ollama, self._more)(self._library, request, reply)
