"""Text to tokens and tokens to text, as llama.cpp b11192 does it."""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from bankml import _native
from bankml.errors import Refused
from bankml.text.spaces import cleaned
from bankml.text.template_tokens import TemplateTokens
from bankml.text.vocabulary import (
    BYTE,
    CONTROL,
    NORMAL,
    PREFIX,
    UNKNOWN,
    USER_DEFINED,
    HasMetadata,
    Vocabulary,
)

SPACE = "\u2581"
"""What stands for a space in the tokens of SentencePiece and of merged characters, and before a word in WordPiece's."""

_NEVER, _WITH_PARSE_SPECIAL, _ALWAYS = range(3)


def _cut(attribute: int) -> int:
    if attribute & (CONTROL | UNKNOWN):
        return _WITH_PARSE_SPECIAL
    return _ALWAYS if attribute & USER_DEFINED else _NEVER


_CUTS = bytes(_cut(attribute) for attribute in range(256))


def _byte_of_character() -> dict[str, int]:
    """The byte of each printable stand-in: visible Latin-1 is itself, the others follow from U+0100 in order."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


_BYTES = _byte_of_character()

# Real vocabularies stay far below both. Every byte of a special token is a node of the tree used to find them; a
# character that stands for no byte is spelled out together with its entire token.
MAX_SPECIAL_BYTES = 1 << 20
MAX_SPELLED_BYTES = 16 << 20


class Tokenizer:
    """Encodes and decodes with one vocabulary. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Raises Refused for a vocabulary whose tokens would take far more memory than their file."""
        _check_sizes(vocabulary)
        self.vocabulary = vocabulary
        self._native = _encoder(vocabulary)

    @classmethod
    def from_header(cls, header: HasMetadata) -> "Tokenizer":
        """Raises Refused, naming the key, for an unsupported vocabulary."""
        return cls(Vocabulary.from_header(header))

    @property
    def n_vocab(self) -> int:
        return len(self.vocabulary.tokens)

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest token."""
        return max(len(self.spelling(token)) for token in range(self.n_vocab))

    def encode(self, text: str | bytes, parse_special: bool = True, add_special: bool = False) -> list[int]:
        """The tokens of `text`; with `add_special` after the beginning-of-sequence token and before the
        end-of-sequence token, where the vocabulary has texts begin and end with them.

        With `parse_special` the texts of control tokens become those tokens; without it only user-defined tokens do. A
        lone surrogate, or an invalid byte, is read as U+FFFD. Runs without the GIL.
        """
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        if isinstance(text, str) and len(data) != len(text):
            data = _without_surrogates(text, data)
        tokens = self._native.encode(data, parse_special)
        return self.added(tokens) if add_special else tokens

    def added(self, tokens: list[int]) -> list[int]:
        """`tokens` with what texts of this vocabulary begin and end with."""
        end = self.vocabulary.eos if self.vocabulary.add_eos else self.vocabulary.separator
        return [*self.begin, *tokens, *([] if end is None else [end])]

    def pair(self, first: str, second: str) -> list[int]:
        """Two texts as one input, such as a question and a document; special tokens in them are plain text."""
        one, other = (self.encode(text, parse_special=False) for text in (first, second))
        closing = [] if self.vocabulary.closing is None else [self.vocabulary.closing]
        divider = [] if self.vocabulary.divider is None else [self.vocabulary.divider]
        return [*self.begin, *one, *closing, *divider, *other, *closing]

    @property
    def begin(self) -> list[int]:
        """What texts of this vocabulary begin with: the beginning-of-sequence token, or nothing."""
        vocabulary = self.vocabulary
        return [vocabulary.bos] if vocabulary.add_bos and vocabulary.bos is not None else []

    @property
    def template_tokens(self) -> TemplateTokens:
        """What a chat template needs of the vocabulary."""
        return TemplateTokens(self.bos_text, self.eos_text, self.vocabulary.add_bos, self.vocabulary.add_eos)

    def n_tokens(self, text: str | bytes, parse_special: bool = True) -> int:
        return len(self.encode(text, parse_special))

    @cached_property
    def control_texts(self) -> tuple[str, ...]:
        """The texts that are tokenized as control tokens with `parse_special`."""
        attributes = self.vocabulary.attributes
        spellings = (self.spelling(token) for token in range(self.n_vocab) if attributes[token] & CONTROL)
        return tuple(text for spelling in spellings if (text := spelling.decode("utf-8", "ignore")))

    @property
    def end_of_generation(self) -> frozenset[int]:
        """The tokens that end an answer."""
        return self.vocabulary.end_of_generation

    def is_end_of_generation(self, token: int) -> bool:
        return token in self.vocabulary.end_of_generation

    def piece(self, token: int) -> bytes:
        """What `token` adds to an answer's text: control and unknown tokens add nothing."""
        if self.vocabulary.attributes[token] & (CONTROL | UNKNOWN):
            return b""
        return self.spelling(token)

    def text(self, tokens: Sequence[int]) -> str:
        """The text of a prompt's tokens as llama-server gives it, control tokens spelled out."""
        pieces = [self.spelling(token) for token in tokens]
        if pieces and self.vocabulary.space_prefix:
            pieces[0] = pieces[0].removeprefix(b" ")
        joined = b"".join(pieces)
        if self.vocabulary.clean_spaces:
            joined = cleaned(joined)
        return joined.decode("utf-8", "replace")

    def spelling(self, token: int) -> bytes:
        """The text of `token`, also of a control token: `/tokenize`'s pieces and the template's bos_token."""
        text, attribute = self.vocabulary.tokens[token], self.vocabulary.attributes[token]
        if attribute & (CONTROL | UNKNOWN | USER_DEFINED):
            return text.encode()
        if attribute & NORMAL:
            return _decoded(text) if self.vocabulary.byte_level else text.replace(SPACE, " ").encode()
        return bytes([int(text[3:5], 16)]) if attribute & BYTE else b""

    @property
    def bos_text(self) -> str:
        """The text of the beginning-of-sequence token, "" without one: a template's `bos_token`."""
        return "" if self.vocabulary.bos is None else self.spelling(self.vocabulary.bos).decode(errors="replace")

    @property
    def eos_text(self) -> str:
        """The text of the end-of-sequence token, "" without one: a template's `eos_token`."""
        return "" if self.vocabulary.eos is None else self.spelling(self.vocabulary.eos).decode(errors="replace")


class Encoder(Protocol):
    """A native tokenizer: text in UTF-8 to token ids, without what a text begins and ends with."""

    def encode(self, text: bytes, parse_special: bool) -> list[int]: ...


def _encoder(vocabulary: Vocabulary) -> Encoder:
    strips = vocabulary.strips_right or bytes(len(vocabulary.tokens))
    cuts = vocabulary.attributes.translate(_CUTS)
    rules = bytes(cut + 8 * strip for cut, strip in zip(cuts, strips, strict=True))
    pretokenizer = vocabulary.pretokenizer
    if pretokenizer is not None:
        splitter, whole = pretokenizer.splitter, pretokenizer.whole_words
        if splitter is None:
            return _native.CharacterTokenizer(vocabulary.tokens, rules, vocabulary.merges, whole)
        return _native.BpeTokenizer(vocabulary.tokens, rules, vocabulary.merges, splitter, whole)
    unknown = -1 if vocabulary.unknown is None else vocabulary.unknown
    normalizer = vocabulary.normalizer
    if normalizer is not None:
        return _native.WpmTokenizer(vocabulary.tokens, rules, normalizer.lower_case, normalizer.strip_accents, unknown)
    return _native.SpmTokenizer(vocabulary.tokens, rules, vocabulary.scores, vocabulary.space_prefix, unknown)


def _check_sizes(vocabulary: Vocabulary) -> None:
    tokens, attributes = vocabulary.tokens, vocabulary.attributes
    special = CONTROL | UNKNOWN | USER_DEFINED
    size = sum(len(token.encode()) for token, kind in zip(tokens, attributes, strict=True) if kind & special)
    if size > MAX_SPECIAL_BYTES:
        raise Refused(f"{PREFIX}tokens has {size} bytes of special tokens, the limit is {MAX_SPECIAL_BYTES}")
    odd = set("".join(tokens)) - _BYTES.keys() if vocabulary.byte_level else set()
    size = 0
    for token, kind in zip(tokens, attributes, strict=True) if odd else ():
        if kind & NORMAL and not kind & special:
            size += len(token.encode()) * sum(character in odd for character in token)
    if size > MAX_SPELLED_BYTES:
        raise Refused(
            f"{PREFIX}tokens has so many characters that stand for no byte, spelled out in {size} bytes: "
            f"the limit is {MAX_SPELLED_BYTES}"
        )


def _without_surrogates(text: str, data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text).encode()
    return data


def _decoded(text: str) -> bytes:
    out = bytearray()
    for character in text:
        byte = _BYTES.get(character)
        if byte is None:
            out += f"[UNK_BYTE_0x{character.encode().hex()}{text}]".encode()
        else:
            out.append(byte)
    return bytes(out)
