"""tokenizer.json and tokenizer_config.json: a byte-level BPE vocabulary, as keys of a GGUF header.

The keys and token types are those that llama.cpp b11192's converter writes. The pre-tokenizer is identified by its
definition in tokenizer.json, not guessed from how it splits a text; one that is not exactly one of PRETOKENIZERS is
refused. An NFC normalizer is accepted beside Qwen2's, as llama.cpp, which has none, accepts it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bankml.convert.hugging_face.added_tokens import (
    AddedToken,
    check_repetitions,
    read_added_tokens,
    token_text,
)
from bankml.convert.hugging_face.config import MetadataEntry
from bankml.convert.hugging_face.fields import JsonConfig, glimpse
from bankml.errors import Refused
from bankml.gguf.values import ValueType, shown
from bankml.gguf.writer import encode_array, encode_value

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5

# How often digits stand together is the difference between Qwen 2's pattern and Llama 3's, which is GPT-4's too.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = _WORDS.replace("DIGITS", r"\p{N}")
LLAMA3_PATTERN = _WORDS.replace("DIGITS", r"\p{N}{1,3}")
TEKKEN_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _split(pattern: str) -> list[dict[str, Any]]:
    return [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
    ]


@dataclass(frozen=True)
class StoredPretokenizer:
    """`steps` of tokenizer.json's pre_tokenizer. `ignore_merges` is what its model may say: whether a word that is a
    token is not built from merges; `normalizers` are those that llama.cpp, which has none, accepts."""

    steps: list[dict[str, Any]]
    ignore_merges: tuple[bool, ...] = (False,)
    normalizers: tuple[object, ...] = ()


PRETOKENIZERS: Mapping[str, StoredPretokenizer] = {
    "smollm": StoredPretokenizer(
        [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        ]
    ),
    "qwen2": StoredPretokenizer(_split(QWEN2_PATTERN), normalizers=({"type": "NFC"},)),
    "llama-bpe": StoredPretokenizer(_split(LLAMA3_PATTERN), ignore_merges=(True,)),
    "dbrx": StoredPretokenizer(_split(LLAMA3_PATTERN)),
    "tekken": StoredPretokenizer(_split(TEKKEN_PATTERN), ignore_merges=(True, False)),
}

# The header's key for a token with a purpose. A class token replaces a missing bos, a separator a missing eos.
_KEYS = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",
    "pad": "padding_token_id",
    "mask": "mask_token_id",
}
_STAND_INS = {"bos": "cls", "eos": "sep"}


@dataclass(frozen=True)
class TokenizerFiles:
    """tokenizer.json and tokenizer_config.json, the two files that older versions write in addition (empty if they are
    missing), and the chat template."""

    tokenizer: JsonConfig
    settings: JsonConfig
    special_map: JsonConfig
    numbers: JsonConfig
    template: str


def tokenizer_entries(files: TokenizerFiles, config: JsonConfig, n_vocab: int) -> Iterator[MetadataEntry]:
    """The header's `tokenizer.*` keys. Raises Refused, naming file and field."""
    tokenizer, settings = files.tokenizer, files.settings
    model = _model(tokenizer)
    pre = pretokenizer(tokenizer)
    if tokenizer.object("decoder").get("type") != "ByteLevel":
        raise tokenizer.refuse("decoder", "is not ByteLevel")
    settings.only("add_prefix_space", False)
    texts, types = _rows(model, n_vocab)
    added = read_added_tokens(tokenizer, model.object("vocab").values)
    check_repetitions(added, settings, files.special_map, files.numbers)
    for text, one in added.items():
        if one.id >= n_vocab:
            raise tokenizer.refuse("added_tokens", f"gives {shown(text)} the id {one.id}, outside 0 to {n_vocab - 1}")
        texts[one.id] = text if one.control else text.replace("▁", " ")
        types[one.id] = CONTROL if one.control else USER_DEFINED
    yield "tokenizer.ggml.model", encode_value(ValueType.STRING, "gpt2")
    yield "tokenizer.ggml.pre", encode_value(ValueType.STRING, pre)
    yield "tokenizer.ggml.tokens", encode_array(ValueType.STRING, texts)
    yield "tokenizer.ggml.token_type", encode_array(ValueType.INT32, types)
    yield "tokenizer.ggml.merges", encode_array(ValueType.STRING, _merges(model))
    for key, token in _named(added, settings, config, n_vocab):
        yield f"tokenizer.ggml.{key}", encode_value(ValueType.UINT32, token)
    for purpose, is_added in added_around(tokenizer, settings).items():
        yield f"tokenizer.ggml.add_{purpose}_token", encode_value(ValueType.BOOL, is_added)
    yield "tokenizer.chat_template", encode_value(ValueType.STRING, files.template)


def pretokenizer(tokenizer: JsonConfig) -> str:
    """The name of a pre-tokenizer, by the structure of `pre_tokenizer`, `ignore_merges` of the model, and the
    normalizer. Raises Refused for one that is not of PRETOKENIZERS."""
    value = tokenizer.get("pre_tokenizer")
    steps = value.get("pretokenizers") if isinstance(value, dict) and value.get("type") == "Sequence" else None
    bare = [_without_offsets(step) for step in steps] if isinstance(steps, list) else None
    same = {name: one for name, one in PRETOKENIZERS.items() if bare == one.steps}
    if not same:
        raise tokenizer.refuse("pre_tokenizer", f"is unsupported (supported: {', '.join(PRETOKENIZERS)})")
    ignoring = tokenizer.object("model").get("ignore_merges") or False
    found = next((name for name, one in same.items() if ignoring in one.ignore_merges), None)
    if found is None:
        raise tokenizer.refuse(
            "model", f"has ignore_merges, which is unsupported with the pre-tokenizer {next(iter(same))}"
        )
    normalizer = tokenizer.get("normalizer")
    if normalizer is not None and normalizer not in same[found].normalizers:
        raise tokenizer.refuse("normalizer", "changes the text, which is unsupported")
    return found


def chat_template(settings: JsonConfig, beside: str | None) -> str:
    """The template in tokenizer_config.json, the one named default if it has several, or `beside`, the text of
    chat_template.jinja. Raises Refused if there is none."""
    value = settings.get("chat_template")
    if isinstance(value, list):
        named = [one for one in value if isinstance(one, dict) and one.get("name") == "default"]
        value = named[0].get("template") if named else None
    if value is None:
        value = beside
    if not isinstance(value, str) or not value:
        raise settings.refuse("chat_template", "is not a string, and chat_template.jinja is missing: a chat needs one")
    return value


def _without_offsets(step: Any) -> Any:
    """`trim_offsets` affects a token's reported position, not its id."""
    return {key: value for key, value in step.items() if key != "trim_offsets"} if isinstance(step, dict) else step


def added_around(tokenizer: JsonConfig, settings: JsonConfig) -> dict[str, bool]:
    """Which tokens are added to a text, by purpose, in the order of llama.cpp's converter: it takes them from the
    post-processor, else from tokenizer_config.json. Raises Refused for more than a beginning-of-sequence token."""
    after, found = tokenizer.get("post_processor"), dict[str, bool]()
    steps = after.get("processors") if isinstance(after, dict) and after.get("type") == "Sequence" else [after]
    for step in (steps if isinstance(steps, list) else [steps]) if after is not None else ():
        given = step if isinstance(step, dict) else {}
        if given.get("type") == "ByteLevel":
            found = {"bos": False, "eos": False} | found
        elif given.get("type") == "TemplateProcessing" and (flags := _added_by_template(given, settings)) is not None:
            found |= flags
        else:
            raise tokenizer.refuse("post_processor", "adds more than bos_token to a text, which is unsupported")
    for purpose in ("bos", "eos", "sep"):
        is_added = settings.get(f"add_{purpose}_token")
        if isinstance(is_added, bool):
            found.setdefault(purpose, is_added)
    if found.get("eos") or found.get("sep"):
        raise settings.refuse("add_eos_token or add_sep_token", "is true, which is unsupported")
    return found


def _added_by_template(step: Mapping[str, Any], settings: JsonConfig) -> dict[str, bool] | None:
    """What a TemplateProcessing adds; None for another one than nothing, or bos_token before each text."""

    def text(name: str) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": 0 if name == "A" else 1}}

    bos = token_text(settings.get("bos_token"))
    first, second = ({"SpecialToken": {"id": bos, "type_id": number}} for number in (0, 1))
    if step.get("single") == [text("A")]:
        return {}
    if step.get("single") != [first, text("A")] or not isinstance(bos, str):
        return None
    if step.get("pair") == [first, text("A"), second, text("B")]:
        return {"bos": True, "sep": False}
    return {"bos": True}


def _model(tokenizer: JsonConfig) -> JsonConfig:
    model = JsonConfig(f"{tokenizer.name}: model", tokenizer.object("model").values)
    if model.text("type") != "BPE":
        raise model.refuse("type", f"is {glimpse(model.get('type'))}, which is unsupported (supported: BPE)")
    model.only("byte_fallback", False)
    model.only("ignore_merges", False, True)
    model.only("dropout")
    model.only("continuing_subword_prefix", "")
    model.only("end_of_word_suffix", "")
    return model


def _rows(model: JsonConfig, n_vocab: int) -> tuple[list[str], list[int]]:
    """Every row's text and type, of the model's own vocabulary; a row without a token is unused."""
    texts = [f"[PAD{i}]" for i in range(n_vocab)]
    types = [UNUSED] * n_vocab
    for text, id_ in model.object("vocab").values.items():
        if isinstance(id_, bool) or not isinstance(id_, int) or not 0 <= id_ < n_vocab:
            raise model.refuse("vocab", f"gives {shown(text)} the id {glimpse(id_)}, outside 0 to {n_vocab - 1}")
        if types[id_] != UNUSED:
            raise model.refuse("vocab", f"gives the id {id_} twice")
        texts[id_], types[id_] = text, NORMAL
    return texts, types


def _merges(model: JsonConfig) -> list[str]:
    """Each as "left right"; a space inside a side, which only the list form can contain, is its stand-in."""
    values = model.get("merges")
    if not isinstance(values, list):
        raise model.refuse("merges", f"is {glimpse(values)}, not a list")
    found: list[str] = []
    for i, value in enumerate(values):
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list) and len(value) == 2 and all(isinstance(side, str) for side in value):
            found.append(" ".join(side.replace(" ", "Ġ") for side in value))
        else:
            raise model.refuse(f"merges[{i}]", "is neither a string nor a pair of strings")
    return found


def _named(
    added: Mapping[str, AddedToken], settings: JsonConfig, config: JsonConfig, n_vocab: int
) -> Iterator[tuple[str, int]]:
    """The tokens with a purpose: by their text in tokenizer_config.json, else by their id in config.json."""
    for purpose, key in _KEYS.items():
        value = settings.get(f"{purpose}_token") or settings.get(f"{_STAND_INS.get(purpose, purpose)}_token")
        text = token_text(value)
        id_ = added[text].id if isinstance(text, str) and text in added else config.get(f"{purpose}_token_id")
        if isinstance(id_, bool) or not isinstance(id_, int):
            continue
        if not 0 <= id_ < n_vocab:
            raise Refused(f"{config.name}: {purpose}_token_id is {id_}, and there are {n_vocab} tokens")
        yield key, id_
