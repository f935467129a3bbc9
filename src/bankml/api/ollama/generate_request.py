"""The body of `POST /api/generate`: one prompt, or an empty one that loads or unloads a model."""

from dataclasses import replace

from bankml.api.ollama.request import UNSUPPORTED, OllamaRequest, read_common, read_think
from bankml.api.reading import fields
from bankml.api.reading.generation import Unsupported, refuse_unsupported
from bankml.api.reading.json_body import read_object
from bankml.errors import RequestError
from bankml.library.request import InfillPrompt, RawPrompt
from bankml.text.messages import Conversation, Message

GENERATE_UNSUPPORTED: Unsupported = {
    **UNSUPPORTED,
    "template": (("",), "the model's own chat template is used, or none with 'raw'"),
    "context": (([],), "send the conversation to /api/chat instead: its tokens are found again in the cache"),
    "width": ((0,), "images are not made"),
    "height": ((0,), "images are not made"),
    "steps": ((0,), "images are not made"),
}


def read_generate(data: bytes) -> OllamaRequest:
    """Reads a request's body. Raises RequestError with one sentence: the field, what is accepted and what was
    received."""
    body = read_object(data)
    refuse_unsupported(body, GENERATE_UNSUPPORTED)
    raw = fields.boolean(body, "raw", False)
    system = fields.string(body, "system") or ""
    prompt = fields.string(body, "prompt") or ""
    suffix = fields.string(body, "suffix") or ""
    thinks, arguments = read_think(body)

    def conversation() -> Conversation:
        first: list[Message] = [{"role": "system", "content": system}] if system else []
        made = Conversation.of([*first, {"role": "user", "content": prompt}])
        return replace(made, enable_thinking=thinks, template_arguments=arguments)

    def made() -> Conversation | RawPrompt | InfillPrompt:
        if suffix:
            return InfillPrompt((prompt,), (suffix,))
        return RawPrompt((prompt,)) if raw else conversation()

    asked = read_common(body, made if prompt or suffix else None)
    if suffix and system:
        raise RequestError("Field 'system': a gap is filled without a chat template, so there is no system message")
    if raw and system:
        raise RequestError("Field 'system': a raw prompt goes to the model as it stands, so it has no system message")
    if raw and body.get("format") not in (None, ""):
        raise RequestError(
            "Field 'format': a raw prompt has no template to constrain its answer behind; leave one of the two out"
        )
    return asked
