"""`/api/create`, `/api/copy`, `/api/delete`: models that are derived from pinned ones."""

from collections.abc import Mapping
from typing import Any

from bankml.api.ollama.model_fields import read_model_fields
from bankml.api.ollama.request import model_name
from bankml.api.reading import fields
from bankml.api.reading.generation import Unsupported, refuse_unsupported
from bankml.api.reading.json_body import read_object
from bankml.errors import NotFound, NotSupported, RequestError
from bankml.http.exchange import NDJSON, Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes, ndjson_line
from bankml.library.derived import copy as copy_model
from bankml.library.derived import create as create_model
from bankml.library.derived import delete as delete_model
from bankml.library.modelfile import Modelfile, read_modelfile
from bankml.library.registry import Registry
from bankml.library.residency import Library

NO_UPLOADS = "files are not taken in over HTTP: pin one with `bankml pin`, and name it in 'from'"
NO_CONVERSION = "weights are converted by `bankml convert`, which records what they were made of"

CREATE_UNSUPPORTED: Unsupported = {
    "files": (({},), NO_UPLOADS),
    "adapters": (({},), "adapters are not supported"),
    "quantize": (("",), NO_CONVERSION),
    "quantization": (("",), NO_CONVERSION),
    "path": (("",), "send the Modelfile itself in 'modelfile'"),
    "renderer": (("",), "a prompt is made by the model's own chat template"),
    "parser": (("",), "an answer is read by the model's own chat template"),
    "remote_host": (("",), "models of other servers are not passed on"),
    "draft": (("",), "draft models are not supported"),
}
"""Fields of /api/create for what is not done here: the values that ask for nothing, and why any other is refused."""

MODELFILE_FIELDS = ("from", "system", "template", "parameters", "messages", "license", "requires")


def create(registry: Registry, request: Request, reply: Reply) -> RequestOutcome:
    """Makes a derived model of the fields of a request, or of its `modelfile`, and tells the steps as Ollama does."""
    body = read_object(request.body)
    refuse_unsupported(body, CREATE_UNSUPPORTED)
    name = model_name(body, "name")
    wanted = _modelfile(body)
    streamed = fields.boolean(body, "stream", True)
    made = create_model(registry, name, wanted)
    statuses = (f"using base {made.base.file} sha256:{made.base.sha256}", f"writing layer sha256:{made.digest}")
    _report(reply, [*statuses, "writing manifest", "success"], streamed)
    return RequestOutcome(200)


def copy(registry: Registry, request: Request, reply: Reply) -> RequestOutcome:
    body = read_object(request.body)
    source, destination = (_required(body, name) for name in ("source", "destination"))
    copy_model(registry, source, destination)
    return _success(reply)


def delete(registry: Registry, request: Request, reply: Reply) -> RequestOutcome:
    delete_model(registry, model_name(read_object(request.body), "name"))
    return _success(reply)


def pull(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """Succeeds for a model that is there, as Ollama's pull of one does. Raises NotSupported for any other."""
    body = read_object(request.body)
    name = model_name(body, "name")
    streamed = fields.boolean(body, "stream", True)
    try:
        library.resolve(name)
    except NotFound as error:
        raise NotSupported(
            f"{error.message}, and models are not downloaded: pin a file you have with `bankml pin`"
        ) from None
    _report(reply, ["pulling manifest", "success"], streamed)
    return RequestOutcome(200, note="already here")


def _modelfile(body: Mapping[str, Any]) -> Modelfile:
    text = fields.string(body, "modelfile")
    if not text:
        return read_model_fields(body)
    if also := next((name for name in MODELFILE_FIELDS if body.get(name)), None):
        raise RequestError(f"Field '{also}': it stands beside 'modelfile', which says it all; leave one of the two out")
    return read_modelfile(text.encode())


def _required(body: Mapping[str, Any], name: str) -> str:
    if not (given := fields.string(body, name)):
        raise RequestError(f"{name} is required: the name of a model")
    return given


def _report(reply: Reply, statuses: list[str], streamed: bool) -> None:
    """The steps as lines of JSON, or the last of them alone."""
    if not streamed:
        reply.whole(200, json_bytes({"status": statuses[-1]}))
        return
    reply.start(200, NDJSON)
    for status in statuses:
        reply.write(ndjson_line({"status": status}))
    reply.finish()


def _success(reply: Reply) -> RequestOutcome:
    reply.whole(200, json_bytes({"status": "success"}))
    return RequestOutcome(200)
