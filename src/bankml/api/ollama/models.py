"""`/api/tags`, `/api/ps`, `/api/show`, `/api/version`: the models that there are, as Ollama describes them."""

import json
import math
import os
import time
from contextlib import suppress
from typing import Any

from bankml import __version__
from bankml.answers.describe import template_thinks
from bankml.answers.families import family_of
from bankml.api.ollama.durations import LONGEST_NS, moment
from bankml.api.ollama.request import model_name
from bankml.api.reading import fields
from bankml.api.reading.json_body import read_object
from bankml.errors import BankmlError
from bankml.gate.guard import guard, require_model
from bankml.gguf.header import Header
from bankml.library.facts import FileFacts, facts_of, missing, written_at
from bankml.library.modelfile import Modelfile, can_be_spelled, write_modelfile
from bankml.library.names import LATEST
from bankml.library.reference import ModelLayer, PinnedFile, Reference
from bankml.library.residency import Library
from bankml.library.supported import TEMPLATE_KEY
from bankml.text.template import ChatTemplate
from bankml.text.vocabulary import fill_in_tokens

Json = dict[str, Any]

OLLAMA_VERSION = "0.12.6"
"""The version of Ollama that this API follows."""

LONG_ARRAY = 5
"""Arrays of the header longer than this are shown empty unless everything is asked for, as in Ollama."""


def tags(library: Library) -> Json:
    """Every model that can be asked for, the one the server started with first."""
    return {"models": [_listed(library, reference) for reference in library.references()]}


def ps(library: Library) -> Json:
    """The resident model, if there is one, as it was last asked for. It is never in a GPU's memory."""
    resident, expires_at, reference = library.resident, library.expires_at, library.asked
    if resident is None:
        return {"models": []}
    reference = _as_it_is(library, reference, resident.source)
    expires = time.time_ns() + LONGEST_NS if expires_at is None else int(expires_at * 1e9)
    listed = _listed(library, reference)
    named = {name: value for name, value in listed.items() if name not in ("modified_at", "capabilities", "bankml")}
    state = {"expires_at": moment(expires), "size_vram": 0, "context_length": resident.n_ctx}
    return {"models": [named | state]}


def _as_it_is(library: Library, asked: Reference, source: PinnedFile) -> Reference:
    """What the resident model was asked for as, if that is still a model of its file: derived models come and go."""
    with suppress(BankmlError):
        now = library.resolve(asked.name)
        if now.source == source:
            return now
    return Reference(source.name, source)


def version() -> Json:
    """The version of Ollama whose API this is, which clients compare with the least that they work with."""
    return {"version": OLLAMA_VERSION, "bankml": __version__}


def show(library: Library, data: bytes) -> Json:
    """One model in full. `verbose` shows the long arrays of its header too."""
    body = read_object(data)
    reference = library.resolve(model_name(body, "name"))
    verbose = fields.boolean(body, "verbose", False)
    header = _header(library, reference.source)
    layer = reference.layer or ModelLayer()
    source_text = header.metadata.get(TEMPLATE_KEY)
    template = source_text if isinstance(source_text, str) else ""
    facts = facts_of(header)
    shown: Json = {
        "license": "\n".join(layer.license) or _license(header),
        "modelfile": _modelfile(reference, layer, template),
        "parameters": _parameters(layer),
        "template": template,
        "system": layer.system or "",
        "details": _details(facts, reference),
        "messages": [dict(message) for message in layer.messages],
        "model_info": _model_info(header, facts, verbose, _served_context(library, reference, header)),
        "capabilities": _capabilities(header, template),
        "modified_at": _modified_at(reference),
        "bankml": _bankml(reference.source, facts),
    }
    if verbose:
        shown["tensors"] = [{"name": t.name, "type": t.type.name, "shape": list(t.shape)} for t in header.tensors]
    return {name: value for name, value in shown.items() if value not in ("", [])}


def _capabilities(header: Header, source: str) -> list[str]:
    """What the model can do besides completing a text, by its template and vocabulary. One that cannot be read, whose
    model is not served either, can do nothing else."""
    if facts_of(header).embeds:
        return ["embedding"]
    found = ["completion"]
    with suppress(BankmlError):
        template = ChatTemplate(source)
        if template.capabilities.tool_calls or family_of(source) is not None:
            found.append("tools")
        if template_thinks(template):
            found.append("thinking")
    with suppress(BankmlError):
        tokens = fill_in_tokens(header.metadata)
        if None not in (tokens.prefix, tokens.suffix, tokens.middle):
            found.append("insert")
    return found


def _listed(library: Library, reference: Reference) -> Json:
    facts = library.facts(reference.source)
    return {
        "name": reference.name + LATEST,
        "model": reference.name + LATEST,
        "modified_at": _modified_at(reference),
        "size": _size(reference.source),
        "digest": reference.source.sha256 if reference.derived is None else reference.derived.digest,
        "details": _details(facts, reference),
        "capabilities": ["embedding" if facts.embeds else "completion"],
        "bankml": _bankml(reference.source, facts),
    }


def _bankml(source: PinnedFile, facts: FileFacts) -> Json:
    """Whether the model is played here, why not, and its file."""
    return {
        "native": facts.reason is None,
        "reason": facts.reason,
        "file": source.file,
        "found": source.path is not None,
    }


def _details(facts: FileFacts, reference: Reference) -> Json:
    return {
        "parent_model": "" if reference.layer is None else reference.source.name,
        "format": "gguf",
        "family": facts.family,
        "families": [facts.family] if facts.family else [],
        "parameter_size": human_count(facts.parameters) if facts.parameters else "",
        "quantization_level": facts.weights,
    }


def _header(library: Library, source: PinnedFile) -> Header:
    """The header of the file: of the resident model the one that was verified."""
    resident = library.resident
    if resident is not None and resident.source == source:
        return resident.verified.header
    if source.path is None:
        raise missing(source)
    return require_model(guard(source.path))


def human_count(count: int) -> str:
    """A number of parameters as Ollama shows it: 135M, 134.52M, 8B, 7.6B, 27K."""
    for scale, letter, decimals in ((10**9, "B", 1), (10**6, "M", 2), (10**3, "K", 0)):
        if count >= scale:
            whole = count % scale == 0
            return f"{count / scale:.{0 if whole else decimals}f}{letter}"
    return str(count)


def _size(source: PinnedFile) -> int:
    """Bytes of the file, 0 where it is not found."""
    try:
        return 0 if source.path is None else os.stat(source.path).st_size
    except OSError:
        return 0


def _modified_at(reference: Reference) -> str:
    """When a derived model was made, or a file last written; the beginning of time where it is not found."""
    return moment(written_at(reference.source)) if reference.derived is None else reference.derived.created_at


def _parameters(layer: ModelLayer) -> str:
    """A line for each parameter, its name 30 wide, as Ollama writes them."""
    stops = (("stop", json.dumps(stop, ensure_ascii=False)) for stop in layer.stop)
    return "\n".join(f"{name:<30} {value}" for name, value in (*layer.parameters.items(), *stops))


def _modelfile(reference: Reference, layer: ModelLayer, template: str) -> str:
    """What `create` would make the same model of; FROM is the name of its file's model. The template is its file's own
    in any case, and left out where a Modelfile cannot hold it."""
    written = write_modelfile(
        Modelfile(
            source=reference.source.name,
            system=layer.system,
            parameters=layer.parameters,
            stop=layer.stop,
            messages=layer.messages,
            license=layer.license,
            template=template if template and can_be_spelled(template) else None,
            requires=layer.requires,
        )
    )
    return f"# To make a model of this one, write in place of the FROM line:\n# FROM {reference.name}\n\n{written}"


def _model_info(header: Header, facts: FileFacts, verbose: bool, n_ctx: int | None) -> Json:
    """The header's keys, but as `context_length` the tokens that are served, which clients ask for as num_ctx."""
    info: Json = {"general.parameter_count": facts.parameters}
    for key, value in header.metadata.items():
        if key != TEMPLATE_KEY:
            info[key] = _as_json(value, verbose)
    key = f"{facts.family}.context_length"
    if n_ctx is not None and key in info:
        info["bankml.trained_context_length"], info[key] = info[key], n_ctx
    return info


def _served_context(library: Library, reference: Reference, header: Header) -> int | None:
    """The tokens of context that the model has here, None where its header names none."""
    architecture = header.metadata.get("general.architecture")
    trained = header.metadata.get(f"{architecture}.context_length") if isinstance(architecture, str) else None
    if not isinstance(trained, int):
        return None
    layer = reference.layer
    return min(library.n_ctx, trained, trained if layer is None or layer.num_ctx is None else layer.num_ctx)


def _license(header: Header) -> str:
    value = header.metadata.get("general.license")
    return value if isinstance(value, str) else ""


def _as_json(value: Any, verbose: bool) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (bool, int, str)):
        return value
    return [_as_json(item, verbose) for item in value] if verbose or len(value) <= LONG_ARRAY else []
