"""Whether the header shows a supported model. Called before the file is hashed, so nothing large is imported."""

from bankml.errors import Refused, Truncated, one_line
from bankml.gguf.header import Header
from bankml.gguf.values import describe
from bankml.model.config import computed_tensors, read_config, unsupported
from bankml.text.vocabulary import supported_kind

TEMPLATE_KEY = "tokenizer.chat_template"
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""The template of a model that has none of its own, as in llama-server."""


def require_supported(header: Header) -> None:
    """Raises Refused, naming the key or tensor, if the header shows an unsupported model.

    Only vocabulary problems are found later, when loading: reading a vocabulary twice would take too long.
    """
    read_config(header)
    supported_kind(header.metadata)
    template_source(header)


def names_pooling(header: Header) -> bool:
    """Whether it is an embedding model: its header names how the states of an input become one vector."""
    config = read_config(header)
    return config.pooling not in (None, "none")


def native_report(header: Header) -> dict[str, object]:
    """What the native engine does with a model, for `--json`: whether it is supported and else why not, the number of
    tensors of each type that it computes with, and the tensors of other types."""
    reason = None
    try:
        require_supported(header)
    except (Refused, Truncated) as error:
        reason = one_line(error.message)
    computed, others = computed_tensors(header)
    return {"supported": reason is None, "reason": reason, "computed": computed, "not_computed": others}


def template_source(header: Header) -> str:
    """The model's chat template, CHATML if it has none. Raises Refused if it is not a string."""
    source = header.metadata.get(TEMPLATE_KEY, "")
    if not isinstance(source, str):
        raise unsupported(f"{TEMPLATE_KEY} is {describe(source)}, and must be a UTF-8 string")
    return source or CHATML
