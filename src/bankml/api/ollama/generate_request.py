"""The body of `POST /api/generate`: one prompt to be answered, or an empty one that loads or unloads a model."""

from dataclasses import dataclass

from bankml.api import fields
from bankml.api.chat_request import Unplayed, refuse_unplayed
from bankml.api.json_in import read_object
from bankml.api.ollama.request import UNPLAYED, Asked, check_format, read_asked
from bankml.errors import RequestError

GENERATE_UNPLAYED: Unplayed = {
    **UNPLAYED,
    "suffix": (("",), "filling in between a prompt and a suffix is not supported"),
    "template": (("",), "the model's own chat template is used, or none with 'raw'"),
    "context": (([],), "send the conversation to /api/chat instead: its tokens are found again in the cache"),
    "width": ((0,), "images are not made"),
    "height": ((0,), "images are not made"),
    "steps": ((0,), "images are not made"),
}


@dataclass(frozen=True)
class Generate:
    """One request, checked. `system` is empty where the model's own counts; with `raw` the prompt goes to the model as
    it stands, without a template. An empty `prompt` asks for no answer."""

    asked: Asked
    prompt: str
    system: str
    raw: bool


def read_generate(data: bytes) -> Generate:
    """Reads a request's body. Raises RequestError with one sentence: the field, what is allowed and what came."""
    body = read_object(data)
    refuse_unplayed(body, GENERATE_UNPLAYED)
    asked = read_asked(body)
    raw = fields.boolean(body, "raw", False)
    system = fields.string(body, "system") or ""
    if raw and system:
        raise RequestError("Field 'system': a raw prompt goes to the model as it stands, so it has no system message")
    if raw and asked.held_to:
        raise RequestError(
            "Field 'format': a raw prompt has no template to hold its answer behind; leave one of the two out"
        )
    prompt = fields.string(body, "prompt") or ""
    if not prompt:
        check_format(asked)
    return Generate(asked, prompt, system, raw)
