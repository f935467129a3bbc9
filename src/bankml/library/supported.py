"""Whether a model is played, as far as its header says. Asked before the file is hashed: nothing large is imported."""

from bankml.gguf.header import Header
from bankml.model.config import read_config, unsupported
from bankml.text.vocabulary import played_pretokenizer

TEMPLATE_KEY = "tokenizer.chat_template"


def require_supported(header: Header) -> None:
    """Raises Refused, naming the key or tensor, where the header alone shows that the model is not played.

    What loading finds later is the vocabulary's: reading one takes too long to be done twice.
    """
    read_config(header)
    played_pretokenizer(header.metadata)
    template_source(header)


def template_source(header: Header) -> str:
    """The model's chat template. Raises Refused where there is none."""
    source = header.metadata.get(TEMPLATE_KEY)
    if not isinstance(source, str):
        raise unsupported(f"{TEMPLATE_KEY} is missing, or is no text")
    return source
