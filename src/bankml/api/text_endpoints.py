"""llama-server's text endpoints: text to tokens, tokens to text, messages to prompt."""

from collections.abc import Mapping
from typing import Any

from bankml.api.reading import anthropic, fields, responses
from bankml.api.reading.generation import chat_request
from bankml.errors import RequestError
from bankml.library.layer import with_layer
from bankml.library.reference import ModelLayer
from bankml.library.resident import Resident
from bankml.text.messages import Conversation

Json = dict[str, object]
Body = Mapping[str, Any]


def tokenize(resident: Resident, layer: ModelLayer | None, request: Body) -> Json:
    """`content`, a string or an array of strings and token ids, as tokens. With `add_special` a first text has
    what texts of the vocabulary begin and end with."""
    add_special = fields.boolean(request, "add_special", False)
    parse_special = fields.boolean(request, "parse_special", True)
    with_pieces = fields.boolean(request, "with_pieces", False)
    content = request.get("content", [])
    if not isinstance(content, (str, list)):
        raise fields.refuse("content", f"expected a string or an array, but got {fields.shown(content)}")
    tokens: list[int] = []
    for i, part in enumerate([content] if isinstance(content, str) else content):
        if isinstance(part, str):
            tokens += resident.tokens.encode(part, parse_special, add_special and i == 0)
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
    layered = with_layer(layer, chat_request(request))
    assert isinstance(layered.prompt, Conversation)
    return {"prompt": resident.answer_format(layered.prompt, layered.constraint).prompt}


def chat_tokens(resident: Resident, layer: ModelLayer | None, request: Body) -> Json:
    """How many tokens the prompt of a chat request has."""
    return {"object": "response.input_tokens", "input_tokens": _count(resident, layer, request)}


def responses_tokens(resident: Resident, layer: ModelLayer | None, request: Body) -> Json:
    """How many tokens the prompt of a request to the Responses API has."""
    return {"object": "response.input_tokens", "input_tokens": _count(resident, layer, responses.chat_body(request)[0])}


def messages_tokens(resident: Resident, layer: ModelLayer | None, request: Body) -> Json:
    """How many tokens the prompt of a request to the Messages API has."""
    return {"input_tokens": _count(resident, layer, anthropic.chat_body(request))}


def _count(resident: Resident, layer: ModelLayer | None, chat: Body) -> int:
    layered = with_layer(layer, chat_request(chat))
    assert isinstance(layered.prompt, Conversation)
    return len(resident.tokenize(resident.answer_format(layered.prompt, layered.constraint)))


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
