"""The body of `POST /infill`: a completion's, with the text around a gap in place of the prompt."""

from dataclasses import replace
from typing import Any

from bankml.api.reading import fields
from bankml.api.reading.generation import completion_request
from bankml.api.reading.json_body import read_object
from bankml.api.reading.prompts import read_prompt
from bankml.errors import RequestError
from bankml.library.request import GenerationRequest, InfillFile, InfillPrompt, RawPrompt


def read_infill(data: bytes) -> GenerationRequest:
    """Reads the body of `POST /infill`. Raises RequestError with one sentence, in llama-server's words
    where it has some."""
    body = read_object(data)
    begun = body.get("prompt")
    if not isinstance(begun, str | None):
        raise RequestError('"prompt" must be a string')
    for name in ("input_prefix", "input_suffix"):
        if body.get(name) is None:
            raise RequestError(f'"{name}" is required')
    prompt = InfillPrompt(
        prefix=_text(body["input_prefix"], "input_prefix"),
        suffix=_text(body["input_suffix"], "input_suffix"),
        begun=begun or "",
        files=_files(body.get("input_extra")),
    )
    return replace(completion_request({**body, "prompt": ""}), prompt=prompt)


def _text(value: Any, name: str) -> tuple[str | int, ...]:
    """A text, or texts and token ids."""
    try:
        if isinstance(value, list) and not value:
            return ()
        read = read_prompt(value) if isinstance(value, str | list) else None
    except RequestError:
        read = None
    if not isinstance(read, RawPrompt):
        raise fields.refuse(name, f"expected a string or an array of strings and tokens, but got {fields.shown(value)}")
    return read.parts


def _files(given: Any) -> tuple[InfillFile, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise RequestError('"input_extra" must be an array of {"filename": string, "text": string}')
    for one in given:
        if not isinstance(one.get("text"), str):
            raise RequestError('extra_context chunk must contain a "text" field with a string value')
        if not isinstance(one.get("filename", ""), str):
            raise RequestError('extra_context chunk\'s "filename" field must be a string')
    return tuple(InfillFile(one.get("filename", "tmp"), one["text"]) for one in given)
