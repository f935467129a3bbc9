"""Whether the header shows a supported model. Called before the file is hashed, so nothing large is imported."""

from bankml.gguf.header import Header
from bankml.model.config import read_config, unsupported
from bankml.text.vocabulary import supported_pretokenizer

TEMPLATE_KEY = "tokenizer.chat_template"


def require_supported(header: Header) -> None:
    """Raises Refused, naming the key or tensor, if the header shows an unsupported model.

    Only vocabulary problems are found later, when loading: reading a vocabulary twice would take too long.
    """
    read_config(header)
    supported_pretokenizer(header.metadata)
    template_source(header)


def template_source(header: Header) -> str:
    """The model's chat template. Raises Refused if there is none."""
    source = header.metadata.get(TEMPLATE_KEY)
    if not isinstance(source, str):
        raise unsupported(f"{TEMPLATE_KEY} is missing or not a string")
    return source
