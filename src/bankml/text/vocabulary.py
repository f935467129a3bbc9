"""The vocabulary of a GGUF header, validated and completed the way llama.cpp b11192 completes it at load.

llama.cpp infers from token texts what the header leaves out: which tokens are control tokens, and which of them end an
answer. The rules are those of its `llama_vocab::impl::load`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bankml import _native
from bankml.errors import Refused, UnsupportedModel
from bankml.gguf.values import describe, shown
from bankml.text.kinds import (
    BOS,
    COMMON_PRETOKENIZERS,
    EOS,
    KINDS,
    PRETOKENIZERS,
    SEPARATOR,
    UNNAMED_PRETOKENIZER,
    Normalizer,
    Pretokenizer,
)
from bankml.text.kinds import UNKNOWN as UNKNOWN_KEY
from bankml.text.purposes import ALWAYS_SHOWN, ENDS, FILL_IN_THE_MIDDLE

PREFIX = "tokenizer.ggml."

# A token's attributes as bits: a retyped token keeps its former ones.
UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, UNDEFINED = 1, 2, 4, 8, 16, 32, 64
_ATTRIBUTES = bytes([UNDEFINED, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE])  # by `token_type`

_FLAGS = ("add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix")
_NORMALIZER = ("normalizer.lowercase", "normalizer.strip_accents")
_ENDING_KEYS = (EOS, "eot_token_id", "eom_token_id")
_OTHER_KEYS = (BOS, UNKNOWN_KEY, SEPARATOR, "padding_token_id", "mask_token_id")


class HasMetadata(Protocol):
    @property
    def metadata(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Vocabulary:
    """`tokens` by id as the file spells them, `attributes` one byte of bits per token.

    `model` is a key of kinds.KINDS. Of BPE `merges` are best first, `pretokenizer` splits words; of
    SentencePiece `scores` has one float a token, `space_prefix` says whether a text begins with a space, and `unknown`
    is the token for bytes that have none; of WordPiece it is that for words, and `normalizer` is set. `strips_right`:
    white space behind the token goes with it, one byte a token. With `add_bos` and `add_eos` a text begins and ends
    with those tokens, where that is asked for; with a `separator` it ends with that one. Of a pair of texts `closing`
    ends each, and `divider` stands between them.
    """

    model: str
    tokens: list[str]
    attributes: bytes
    end_of_generation: frozenset[int]
    bos: int | None
    eos: int | None
    separator: int | None = None
    closing: int | None = None
    divider: int | None = None
    unknown: int | None = None
    add_bos: bool = False
    add_eos: bool = False
    merges: Sequence[str] = ()
    pretokenizer: Pretokenizer | None = None
    scores: Sequence[float] = ()
    space_prefix: bool = False
    clean_spaces: bool = False
    normalizer: Normalizer | None = None
    strips_right: bytes = b""

    @property
    def byte_level(self) -> bool:
        """A token's characters stand for bytes."""
        return self.pretokenizer is not None and self.pretokenizer.splitter is not None

    @classmethod
    def from_header(cls, header: HasMetadata) -> "Vocabulary":
        """Raises Refused, naming the key, for an unsupported vocabulary."""
        return _read(header.metadata)


def supported_kind(metadata: Mapping[str, Any]) -> tuple[str, Pretokenizer | None]:
    """The vocabulary's model and its pre-tokenizer, where it has one. Raises Refused, naming the key, if the vocabulary
    is unsupported, before a token is read."""
    model = _text(metadata, "model")
    if model not in KINDS:
        raise UnsupportedModel(f"{PREFIX}model: unsupported vocabulary {shown(model)} (supported: {', '.join(KINDS)})")
    pretokenizer = None
    if KINDS[model].merges:
        named = _text(metadata, "pre") if PREFIX + "pre" in metadata else ""
        name = KINDS[model].pretokenizer or named or UNNAMED_PRETOKENIZER
        pretokenizer = PRETOKENIZERS.get(name)
        if pretokenizer is None:
            known = f"{', '.join(COMMON_PRETOKENIZERS)} and {len(PRETOKENIZERS) - len(COMMON_PRETOKENIZERS)} more"
            raise UnsupportedModel(f"{PREFIX}pre: unsupported pre-tokenizer {shown(name)} (supported: {known})")
    for key in (*_FLAGS, *(_NORMALIZER if KINDS[model].normalizer else ())):
        _flag(metadata, key, False)
    _refuse_suppressed(metadata)
    return model, pretokenizer


def _read(metadata: Mapping[str, Any]) -> Vocabulary:
    model, pretokenizer = supported_kind(metadata)
    kind = KINDS[model]
    tokens = _strings(metadata, "tokens")
    tokens = [token or f"[EMPTY_{id}]" for id, token in enumerate(tokens)]
    ids = {token: id for id, token in enumerate(tokens)}
    if len(ids) != len(tokens):
        again = next(token for id, token in enumerate(tokens) if ids[token] != id)
        raise Refused(f"{PREFIX}tokens has {shown(again)} twice")
    attributes = bytearray(_attributes(metadata, tokens))
    named = _named_ids(metadata, len(tokens))
    named = {key: id for key, id in kind.defaults.items() if id < len(tokens)} | named
    if missing := [key for key in kind.required if key not in named]:
        raise Refused(f"{PREFIX}{missing[0]} is missing")
    ends = _complete(tokens, ids, attributes, named)
    bos = named.get(BOS)
    default = kind.add_bos if pretokenizer is None else pretokenizer.add_bos
    always = kind.encloses or (pretokenizer is not None and pretokenizer.always_bos)
    add_bos = always or _flag(metadata, "add_bos_token", default)
    if add_bos and bos is None:
        why = "every text begins with it" if always else f"{PREFIX}add_bos_token is true"
        raise Refused(f"{PREFIX}bos_token_id is missing, but {why}")
    return Vocabulary(
        model=model,
        tokens=tokens,
        attributes=bytes(attributes),
        end_of_generation=frozenset(ends),
        bos=bos,
        eos=named.get(EOS),
        separator=named[SEPARATOR] if kind.encloses else None,
        closing=named.get(EOS, named.get(SEPARATOR)) if _flag(metadata, "add_eos_token", False) else None,
        divider=named.get(SEPARATOR) if _flag(metadata, "add_sep_token", kind.encloses) else None,
        unknown=named.get(UNKNOWN_KEY),
        add_bos=add_bos,
        add_eos=not kind.encloses and _flag(metadata, "add_eos_token", False),
        merges=_merges(metadata) if kind.merges else (),
        pretokenizer=pretokenizer,
        scores=_scores(metadata, len(tokens)) if kind.scores else (),
        space_prefix=not kind.merges and _flag(metadata, "add_space_prefix", kind.space_prefix),
        clean_spaces=kind.clean_spaces if pretokenizer is None else pretokenizer.clean_spaces,
        normalizer=_normalizer(metadata, attributes) if kind.normalizer else None,
        strips_right=_strips_right(metadata, tokens, ids, attributes),
    )


def _normalizer(metadata: Mapping[str, Any], attributes: bytearray) -> Normalizer:
    if any(attribute & BYTE for attribute in attributes):
        raise Refused(f"{PREFIX}token_type says that a token is a byte, which WordPiece does not have")
    lower_case = _flag(metadata, "normalizer.lowercase", True)
    return Normalizer(lower_case, _flag(metadata, "normalizer.strip_accents", lower_case))


def _merges(metadata: Mapping[str, Any]) -> list[str]:
    merges = _strings(metadata, "merges")
    for rank, merge in enumerate(merges):
        if merge.find(" ", 1) < 0 or merge.count(" ") != 1:
            raise Refused(f"{PREFIX}merges has an entry without two sides at {rank}: {shown(merge)}")
    return merges


def _scores(metadata: Mapping[str, Any], n_tokens: int) -> Sequence[float]:
    scores = metadata.get(PREFIX + "scores")
    if scores is None:
        return [0.0] * n_tokens
    kept_as = "f" if isinstance(scores, list) else getattr(scores, "typecode", "")
    if kept_as not in ("f", "i"):
        raise Refused(f"{PREFIX}scores is not an array of 32-bit numbers")
    if len(scores) != n_tokens:
        raise Refused(f"{PREFIX}scores has {len(scores)} entries for {n_tokens} tokens")
    found = [float(score) for score in scores]
    if any(map(math.isnan, found)):
        raise Refused(f"{PREFIX}scores has an entry that is not a number")
    return found


def _text(metadata: Mapping[str, Any], key: str) -> str:
    value = metadata.get(PREFIX + key)
    if value is None:
        raise Refused(f"{PREFIX}{key} is missing")
    return _decoded(value, key)


def _decoded(value: Any, key: str) -> str:
    if not isinstance(value, str | bytes):
        raise Refused(f"{PREFIX}{key} is not a string")
    try:
        return value.decode() if isinstance(value, bytes) else value.encode().decode()
    except UnicodeError:
        raise Refused(f"{PREFIX}{key} is not valid UTF-8: {shown(value)}") from None


def _strings(metadata: Mapping[str, Any], key: str) -> list[str]:
    values = metadata.get(PREFIX + key)
    if values is None:
        raise Refused(f"{PREFIX}{key} is missing")
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise Refused(f"{PREFIX}{key} is not an array of strings")
    if key == "tokens" and not values:
        raise Refused(f"{PREFIX}{key} is empty")
    try:
        return [value.decode() for value in values]
    except (AttributeError, UnicodeDecodeError):  # a value is not bytes, or not UTF-8: find out which
        return [_decoded(value, key) for value in values]


def _attributes(metadata: Mapping[str, Any], tokens: Sequence[str]) -> bytes:
    types = metadata.get(PREFIX + "token_type")
    if types is None:
        return bytes([NORMAL]) * len(tokens)
    kept_as = "i" if isinstance(types, list) else getattr(types, "typecode", "")
    if kept_as != "i":
        raise Refused(f"{PREFIX}token_type is not an array of 32-bit integers")
    if len(types) != len(tokens):
        raise Refused(f"{PREFIX}token_type has {len(types)} entries for {len(tokens)} tokens")
    for id, kind in enumerate(types):
        if not 0 <= kind < len(_ATTRIBUTES):
            raise Refused(f"{PREFIX}token_type of token {id} is {kind}, expected 0 to {len(_ATTRIBUTES) - 1}")
        if kind == 6 and not re.fullmatch(r"<0x[0-9A-Fa-f]{2}>", tokens[id]):
            raise Refused(f"{PREFIX}token_type says token {id} is a byte, but its text is {shown(tokens[id])}")
    return bytes(list(types)).translate(_ATTRIBUTES + bytes(256 - len(_ATTRIBUTES)))


def _named_ids(metadata: Mapping[str, Any], n_tokens: int) -> dict[str, int]:
    keys = [*_ENDING_KEYS, *_OTHER_KEYS, *(key for purpose in FILL_IN_THE_MIDDLE for key in purpose.keys)]
    named = {}
    for key in keys:
        value = metadata.get(PREFIX + key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refused(f"{PREFIX}{key} is not a token id")
        if not 0 <= value < n_tokens:
            raise Refused(f"{PREFIX}{key} is {value}, but there are {n_tokens} tokens")
        named[key] = value
    return named


def _complete(tokens: list[str], ids: Mapping[str, int], attributes: bytearray, named: Mapping[str, int]) -> set[int]:
    """Retypes tokens by their text, in `attributes`, and returns the end-of-generation tokens."""
    ends = set()
    for purpose in FILL_IN_THE_MIDDLE:
        id = next((named[key] for key in reversed(purpose.keys) if key in named), None)
        if id is None:
            id = _known_by_name(tokens, ids, purpose.names)
            if id is not None:
                attributes[id] |= CONTROL
        if id is not None and purpose.ends_generation:
            ends.add(id)
    by_name = {name: ids[name] for name in ENDS if name in ids}
    for id in by_name.values():
        attributes[id] |= CONTROL
    ends.update(by_name.values())
    for name in ALWAYS_SHOWN:
        if name in ids:
            attributes[ids[name]] = USER_DEFINED
    ends.update(named[key] for key in _ENDING_KEYS if key in named)

    # Other tokens of the set can show whose vocabulary this is; one of the names then has another meaning.
    texts = {tokens[id]: id for id in ends}
    calls = "<|call|>" in texts or "<|calls|>" in texts
    if "<|end|>" in texts and calls and ("<|return|>" in texts or "<|flush|>" in texts):
        ends.discard(texts["<|end|>"])
        attributes[texts["<|end|>"]] = USER_DEFINED
    if "</s>" in texts and "<|tool_response>" in texts:
        ends.discard(texts["</s>"])
        attributes[texts["</s>"]] = NORMAL
    return ends


def _known_by_name(tokens: list[str], ids: Mapping[str, int], names: Sequence[str]) -> int | None:
    present = [name for name in names if name in ids]
    if len(present) > 1:
        present = [present[_native.first_in_hash_order(tokens, present)]]
    return ids[present[0]] if present else None


def _flag(metadata: Mapping[str, Any], key: str, default: bool) -> bool:
    value = metadata.get(PREFIX + key, default)
    if not isinstance(value, bool):
        raise Refused(f"{PREFIX}{key} is {describe(value)}, not true or false")
    return value


def _refuse_suppressed(metadata: Mapping[str, Any]) -> None:
    suppressed = metadata.get(PREFIX + "suppress_tokens", ())
    if isinstance(suppressed, str | bytes) or not hasattr(suppressed, "__len__"):
        raise Refused(f"{PREFIX}suppress_tokens is {describe(suppressed)}, not an array of token ids")
    if len(suppressed):
        raise Refused(f"{PREFIX}suppress_tokens names tokens: suppressing tokens is unsupported")


def _strips_right(
    metadata: Mapping[str, Any], tokens: Sequence[str], ids: Mapping[str, int], attributes: bytearray
) -> bytes:
    """llama.cpp strips white space around special tokens of models that it knows by name: of Phi-3 behind all but three
    of them."""
    name = metadata.get("general.name", "")
    lower = (name.decode(errors="replace") if isinstance(name, bytes) else str(name)).lower()
    if "phi-3" in lower or "phi3" in lower:
        special = CONTROL | USER_DEFINED | UNKNOWN
        kept = {"<unk>", "<s>", "<|endoftext|>"}
        strips = [bool(kind & special) and token not in kept for token, kind in zip(tokens, attributes, strict=True)]
        if "</s>" in ids:
            strips[ids["</s>"]] = True
        return bytes(strips)
    if "modern-bert" in lower and "[MASK]" in ids:
        raise Refused(
            f"general.name is {shown(lower)}: stripping white space around that model's special tokens is unsupported"
        )
    return bytes(len(tokens))


@dataclass(frozen=True)
class FillIn:
    """The tokens around the parts of a text that is to be filled in; None for those that the vocabulary lacks."""

    prefix: int | None = None
    suffix: int | None = None
    middle: int | None = None
    repository: int | None = None
    separator: int | None = None


def fill_in_tokens(metadata: Mapping[str, Any]) -> FillIn:
    """The tokens for filling in, by the header's keys or by their texts. Raises Refused for ids that are none."""
    tokens = _strings(metadata, "tokens")
    ids = {token: id for id, token in enumerate(tokens)}
    named = _named_ids(metadata, len(tokens))
    found = []
    for purpose in FILL_IN_THE_MIDDLE:
        id = next((named[key] for key in reversed(purpose.keys) if key in named), None)
        found.append(_known_by_name(tokens, ids, purpose.names) if id is None else id)
    prefix, suffix, middle, _, repository, separator = found
    return FillIn(prefix, suffix, middle, repository, separator)
