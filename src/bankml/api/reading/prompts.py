"""The `prompt` of a completion request: text, token ids, or both mixed."""

from bankml.api.reading import fields
from bankml.errors import RequestError
from bankml.library.request import RawPrompt

PROMPT_FORMS = (
    '"prompt" elements must be a string, a list of tokens, a JSON object containing a prompt string, '
    "or a list of mixed strings & tokens."
)
"""llama-server's sentence for a prompt it cannot read."""


MAX_PROMPTS = 2048
"""Prompts of one request; OpenAI's limit."""


def read_prompts(value: object) -> list[RawPrompt]:
    """One prompt or several. An array without a number in it is an array of prompts. Raises RequestError."""
    if not isinstance(value, list) or any(_is_token(one) for one in value):
        return [_one(value)]
    if not value:
        raise RequestError('"prompt" must not be empty')
    if len(value) > MAX_PROMPTS:
        raise fields.refuse("prompt", f"at most {MAX_PROMPTS} prompts a request, but got {len(value)}")
    return [_one(one) for one in value]


def read_prompt(value: object) -> RawPrompt:
    """One prompt. Raises RequestError, for several too."""
    prompt, *more = read_prompts(value)
    if more:
        raise fields.refuse("prompt", f"one prompt is expected, but got {1 + len(more)}")
    return prompt


def _one(value: object) -> RawPrompt:
    if isinstance(value, dict) and "prompt_string" in value:
        if "multimodal_data" in value:
            raise RequestError("Multimodal data provided, but model does not support multimodal requests.")
        value = value["prompt_string"]
    if isinstance(value, str):
        return RawPrompt((value,))
    if isinstance(value, list) and all(isinstance(one, str) or _is_token(one) for one in value):
        return RawPrompt(tuple(value))
    raise RequestError(PROMPT_FORMS)


def _is_token(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
