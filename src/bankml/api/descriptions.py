"""llama-server's descriptions of the server and its models: `/health`, `/props`, `/v1/models`."""

from collections.abc import Sequence

from bankml import __version__
from bankml.gguf.file_types import file_type_name
from bankml.library.facts import made_at
from bankml.library.reference import Reference
from bankml.library.request import UNLIMITED
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.sampling.parameters import SamplingParams, as_fields
from bankml.text.capabilities import Capabilities

Json = dict[str, object]

NOT_IN_PROPS = ("logit_bias", "dry_sequence_breakers")
"""What llama-server leaves out where it lists the defaults of a request."""

BPE = 2
"""llama.cpp's number of the vocabulary type."""


def health(library: Library) -> Json:
    """`GET /health`. Raises ModelChanged (503) while the loaded model's file is not the one that was verified, since
    requests are refused then."""
    resident = library.resident
    if resident is not None:
        resident.check_unchanged()
    return {"status": "ok"}


def props(library: Library, resident: Resident) -> Json:
    """llama-server's description of the model and the defaults of a request; of the model's path only the file's
    name. Features that are not here are false."""
    return {
        "default_generation_settings": {"params": default_params(resident.defaults), "n_ctx": resident.n_ctx},
        "total_slots": 1,
        "model_alias": resident.name,
        "model_ftype": file_type_name(resident.metadata),
        "model_path": resident.file,
        "modalities": {"vision": False, "video": False, "audio": False},
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "ui": False,
        "ui_settings": {},
        "chat_template": resident.template.source,
        "chat_template_caps": template_caps(resident.template.capabilities),
        "bos_token": resident.tokens.bos_text,
        "eos_token": resident.tokens.eos_text,
        "build_info": f"bankml-{__version__}",
        "is_sleeping": False,
        "cors_proxy_enabled": False,
    }


def template_caps(capabilities: Capabilities) -> Json:
    """What the chat template was written for, by llama-server's names."""
    return {
        "supports_string_content": capabilities.string_content,
        "supports_typed_content": capabilities.typed_content,
        "supports_tool_calls": capabilities.tool_calls,
        "supports_parallel_tool_calls": capabilities.parallel_tool_calls,
        "supports_system_role": capabilities.system_role,
        "supports_object_arguments": capabilities.object_arguments,
    }


def default_params(defaults: SamplingParams) -> Json:
    """The parameters of a request that sets none, by llama-server's names."""
    params = {name: value for name, value in as_fields(defaults).items() if name not in NOT_IN_PROPS}
    rest: Json = {"stop": [], "n_keep": 0, "n_discard": 0, "grammar": "", "grammar_lazy": False}
    rest |= {"grammar_triggers": [], "preserved_tokens": [], "reasoning_format": "none", "generation_prompt": ""}
    rest |= {"timings_per_token": False, "backend_sampling": False, "lora": []}
    return params | rest | {"max_tokens": UNLIMITED, "n_predict": UNLIMITED, "stream": False}


def models(library: Library, resident: Resident | None) -> Json:
    """OpenAI's list of models: the resident one with llama-server's `meta`, and the others that may be asked for.

    Clients offer what it lists: a pin whose file is not here, or is not played, is left to `GET /bankml`.
    """
    here = [] if resident is None else [_resident(library, resident)]
    name = None if resident is None else resident.name
    others = [one for one in library.references() if one.name != name and library.facts(one.source).reason is None]
    data = [*here, *(_other(library, one) for one in others)]
    return {"models": [_as_ollama(one) for one in data], "object": "list", "data": data}


def _as_ollama(entry: Json) -> Json:
    """An entry in the form that llama-server lists beside OpenAI's."""
    details = {"parent_model": "", "format": "gguf", "family": "", "families": [""], "parameter_size": ""}
    return {
        "name": entry["id"],
        "model": entry["id"],
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": details | {"quantization_level": ""},
    }


def model(library: Library, reference: Reference) -> Json:
    """The entry of one model, as the list has it."""
    resident = library.resident_as(reference)
    if resident is not None and reference.layer is None:
        return _resident(library, resident)
    return _other(library, reference)


def _resident(library: Library, resident: Resident) -> Json:
    architecture = resident.metadata.get("general.architecture", "")
    tensors = resident.verified.header.tensors
    meta = {
        "vocab_type": BPE,
        "n_vocab": resident.tokens.n_vocab,
        "n_ctx": resident.n_ctx,
        "n_ctx_train": resident.metadata.get(f"{architecture}.context_length"),
        "n_embd": resident.metadata.get(f"{architecture}.embedding_length"),
        "n_params": sum(tensor.elements for tensor in tensors),
        "size": sum(tensor.nbytes for tensor in tensors),
        "ftype": file_type_name(resident.metadata),
        "sha256": resident.provenance.model_sha256,
    }
    aliases = library.names_of(resident.source)[1:]
    return {**_listed(resident.name, aliases, resident.verified.identity.mtime_ns // 10**9), "meta": meta}


def _other(library: Library, reference: Reference) -> Json:
    """A model that is not in memory: of it, nothing but its record is known."""
    aliases = library.names_of(reference.source)[1:] if reference.layer is None else ()
    return {**_listed(reference.name, aliases, made_at(reference)), "meta": {"sha256": reference.source.sha256}}


def _listed(name: str, aliases: Sequence[str], created: int) -> Json:
    """`created` is when its file was last written, or the derived model was made, in seconds since the epoch."""
    return {"id": name, "aliases": list(aliases), "object": "model", "created": created, "owned_by": "bankml"}
