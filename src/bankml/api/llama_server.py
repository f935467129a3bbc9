"""llama-server's other endpoints: what the model is, and text to tokens, tokens to text, messages to prompt."""

from collections.abc import Mapping, Sequence
from typing import Any

from bankml import __version__
from bankml.api.reading import fields
from bankml.api.reading.generation import chat_request
from bankml.errors import RequestError
from bankml.library.facts import made_at
from bankml.library.layer import with_layer
from bankml.library.reference import ModelLayer, Reference
from bankml.library.request import UNLIMITED
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.sampling.parameters import SamplingParams, as_fields
from bankml.text.messages import Conversation

Json = dict[str, object]

NOT_IN_PROPS = ("logit_bias", "dry_sequence_breakers")
"""What llama-server leaves out where it lists the defaults of a request."""

Body = Mapping[str, Any]


def health(library: Library) -> Json:
    return {"status": "ok"}


def props(library: Library, resident: Resident) -> Json:
    """What llama-server says of the model and its defaults; of the model's path only the file's name."""
    return {
        "default_generation_settings": {"params": default_params(resident.defaults), "n_ctx": resident.n_ctx},
        "total_slots": 1,
        "model_alias": resident.name,
        "model_path": resident.file,
        "modalities": {"vision": False, "video": False, "audio": False},
        "chat_template": resident.template.source,
        "bos_token": resident.tokens.bos_text,
        "eos_token": resident.tokens.eos_text,
        "build_info": f"bankml-{__version__}",
        "is_sleeping": False,
    }


def models(library: Library, resident: Resident | None) -> Json:
    """OpenAI's list of models: the resident one with llama-server's `meta`, and the others that may be asked for.

    Clients offer what it lists: a pin whose file is not here, or is not played, is left to `GET /bankml`.
    """
    here = [] if resident is None else [_resident(library, resident)]
    name = None if resident is None else resident.name
    others = [one for one in library.references() if one.name != name and library.facts(one.source).reason is None]
    return {"object": "list", "data": [*here, *(_other(library, one) for one in others)]}


def _resident(library: Library, resident: Resident) -> Json:
    architecture = resident.metadata.get("general.architecture", "")
    meta = {
        "n_vocab": resident.tokens.n_vocab,
        "n_ctx": resident.n_ctx,
        "n_ctx_train": resident.metadata.get(f"{architecture}.context_length"),
        "n_embd": resident.metadata.get(f"{architecture}.embedding_length"),
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


def tokenize(resident: Resident, layer: ModelLayer | None, request: Body) -> Json:
    """`content`, a string or an array of strings and token ids, as tokens. `add_special` adds none for these models."""
    fields.boolean(request, "add_special", False)
    parse_special = fields.boolean(request, "parse_special", True)
    with_pieces = fields.boolean(request, "with_pieces", False)
    content = request.get("content", [])
    if not isinstance(content, (str, list)):
        raise fields.refuse("content", f"expected a string or an array, but got {fields.shown(content)}")
    tokens: list[int] = []
    for i, part in enumerate([content] if isinstance(content, str) else content):
        if isinstance(part, str):
            tokens += resident.tokens.encode(part, parse_special=parse_special)
        else:
            tokens.append(_token(resident, part, f"content[{i}]"))
    if not with_pieces:
        return {"tokens": tokens}
    return {"tokens": [{"id": token, "piece": _piece(resident.tokens.spelling(token))} for token in tokens]}


def detokenize(resident: Resident, layer: ModelLayer | None, request: Body) -> Json:
    """`tokens` as text, control tokens spelled out; bytes that are not UTF-8 become U+FFFD."""
    tokens = request.get("tokens", [])
    if not isinstance(tokens, list):
        raise fields.refuse("tokens", f"expected an array of token ids, but got {fields.shown(tokens)}")
    ids = [_token(resident, token, f"tokens[{i}]") for i, token in enumerate(tokens)]
    return {"content": b"".join(map(resident.tokens.spelling, ids)).decode("utf-8", "replace")}


def apply_template(resident: Resident, layer: ModelLayer | None, request: Body) -> Json:
    """The prompt that `/v1/chat/completions` would complete for the same body."""
    prompt = with_layer(layer, chat_request(request)).prompt
    assert isinstance(prompt, Conversation)
    return {"prompt": resident.render(prompt).text}


def default_params(defaults: SamplingParams) -> Json:
    """The parameters of a request that sets none, by llama-server's names."""
    params = {name: value for name, value in as_fields(defaults).items() if name not in NOT_IN_PROPS}
    return params | {"max_tokens": UNLIMITED, "n_predict": UNLIMITED, "stream": False}


def _token(resident: Resident, value: object, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise fields.refuse(path, f"expected a token id, but got {fields.shown(value)}")
    if not 0 <= value < resident.tokens.n_vocab:
        raise RequestError(f"Field '{path}': token ids are from 0 to {resident.tokens.n_vocab - 1}, but got {value}")
    return value


def _piece(piece: bytes) -> str | list[int]:
    """Text where the bytes are whole UTF-8, and the bytes where not."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return list(piece)
