"""Added tokens of a vocabulary: those of tokenizer.json, and their repetitions in other files.

Hugging Face's library numbers them itself and adds tokens that only another file names; which file's flags count
depends on its version. So tokenizer.json's ids must be the ones the library assigns, and repetitions must agree, or
the folder is refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bankml.convert.hugging_face.fields import JsonConfig, glimpse
from bankml.gguf.values import shown

PURPOSES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")  # tokenizer_config.json's `X_token`
_LOOK_SPECIAL = ("<pad>", "<mask>", "<2mass>", "[@BOS@]")
_FLAGS = ("lstrip", "rstrip", "single_word")
_BYTE_LEVEL = re.compile("[!-~¡-¬®-\u0143]+")  # the stand-ins for bytes


@dataclass(frozen=True)
class AddedToken:
    """`special` is tokenizer.json's flag; `control` is also set for tokens that look like control tokens."""

    id: int
    special: bool
    control: bool


def read_added_tokens(tokenizer: JsonConfig, vocab: Mapping[str, Any]) -> dict[str, AddedToken]:
    """tokenizer.json's `added_tokens` by their texts. Raises Refused, naming the entry."""
    values = tokenizer.get("added_tokens")
    if values is not None and not isinstance(values, list):
        raise tokenizer.refuse("added_tokens", "is not a list")
    found: dict[str, AddedToken] = {}
    free = len(vocab)
    for i, value in enumerate(values or ()):
        token = JsonConfig(f"{tokenizer.name}: added_tokens[{i}]", value if isinstance(value, dict) else {})
        text, id_ = token.text("content"), token.get("id")
        if isinstance(id_, bool) or not isinstance(id_, int) or not text:
            raise token.refuse("id", f"is {glimpse(id_)}, not a token id")
        if text in found:
            raise token.refuse("content", f"is {shown(text)}, a duplicate")
        if id_ != vocab.get(text, free):
            raise token.refuse("id", f"is {id_}, where {shown(text)} is token {glimpse(vocab.get(text, free))}")
        free = max(free, id_ + 1)
        for key in _FLAGS:
            token.only(key, False)
        if token.get("normalized") is not True and not text.isascii() and _BYTE_LEVEL.fullmatch(text):
            raise token.refuse("content", f"is {shown(text)}, which decodes to other bytes")
        special = token.get("special") is True
        found[text] = AddedToken(id_, special, special or _looks_special(text))
    return found


def check_repetitions(
    added: Mapping[str, AddedToken], settings: JsonConfig, special_map: JsonConfig, numbers: JsonConfig
) -> None:
    """Raises Refused if tokenizer_config.json, special_tokens_map.json or added_tokens.json disagree."""
    for text, number in numbers.values.items():
        if text not in added or type(number) is not int or number != added[text].id:
            raise numbers.refuse(shown(text), f"is {glimpse(number)}: not so in tokenizer.json")
    for document in (settings, special_map):
        for key, text in _special_texts(document):
            if not isinstance(text, str) or text not in added or not added[text].control:
                raise document.refuse(key, f"names {glimpse(text)}, which is not a special token of tokenizer.json")
    if settings.get("added_tokens_decoder") is None:
        return
    key, listed = "added_tokens_decoder", settings.object("added_tokens_decoder").values
    for number, value in listed.items():
        token = value if isinstance(value, dict) else {}
        content = token.get("content")
        if not isinstance(content, str) or content not in added or str(added[content].id) != number:
            raise settings.refuse(key, f"has {glimpse(content)} at {shown(number)}: not in tokenizer.json")
        if (token.get("special") is True) != added[content].special or any(token.get(flag) for flag in _FLAGS):
            raise settings.refuse(key, f"contradicts tokenizer.json about {shown(content)}")
    left_out = next((text for text, token in added.items() if str(token.id) not in listed), None)
    if left_out is not None:
        raise settings.refuse(key, f"omits {shown(left_out)}, which tokenizer.json has")


def token_text(value: Any) -> Any:
    """A token in a JSON file: its text, or an object that has it as `content`."""
    return value.get("content") if isinstance(value, dict) else value


def _special_texts(document: JsonConfig) -> Iterator[tuple[str, Any]]:
    """The special tokens that a file names, with the field. An empty text names none."""
    for purpose in PURPOSES:
        if text := token_text(document.get(f"{purpose}_token")):
            yield f"{purpose}_token", text
    for key in ("additional_special_tokens", "extra_special_tokens"):
        values = document.get(key) or []
        if not isinstance(values, list | dict):
            raise document.refuse(key, f"is {glimpse(values)}, not a list")
        for value in values.values() if isinstance(values, dict) else values:
            yield key, token_text(value)


def _looks_special(text: str) -> bool:
    """Tokens that llama.cpp's converter treats as control tokens whatever their flags are."""
    around = (("<|", "|>"), ("<｜", "｜>"), ("<unused", ">"))
    return text in _LOOK_SPECIAL or any(text.startswith(first) and text.endswith(last) for first, last in around)
