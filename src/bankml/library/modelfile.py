"""Ollama's Modelfile: parsed as Ollama parses it, and written back.

An instruction's name may be in any case and is at the beginning of a line, after optional blanks; a line that begins
with `#` is a comment. A value extends to the end of its line, without blanks at either end. One that begins with a
quote, three of them or one, extends over lines until one ends with that quote, and the quotes are removed: there are no
escapes. The file is UTF-8, or UTF-16 with a byte order mark.

`FROM` occurs once. Of `SYSTEM`, `TEMPLATE`, `REQUIRES` and a `PARAMETER` the last counts; `PARAMETER stop`, `MESSAGE`
and `LICENSE` accumulate. Refused: `ADAPTER`, `DRAFT`, `RENDERER`, `PARSER`, an unsupported parameter, and control
characters, which Ollama drops. An error message has the line of the instruction.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bankml.errors import RequestError
from bankml.library import parameters
from bankml.library.names import quoted

MOST_BYTES = 4 << 20
ROLES = ("system", "user", "assistant")
REFUSED = {
    "ADAPTER": "adapters are unsupported",
    "DRAFT": "draft models are unsupported",
    "RENDERER": "the model's own chat template renders the prompt",
    "PARSER": "the model's own chat template determines how an answer is parsed",
}
INSTRUCTIONS = ("FROM", "PARAMETER", "TEMPLATE", "SYSTEM", "MESSAGE", "LICENSE", "REQUIRES")

_BLANKS = " \t"
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEAD = re.compile(r"(?P<name>[A-Za-z]+)[ \t]?")
_SECOND = re.compile(r"[ \t]+(?P<name>[A-Za-z0-9_]+)[ \t]?")
_VERSION = re.compile(r"v?(0|[1-9]\d*)(\.(0|[1-9]\d*)){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Modelfile:
    """The content of a Modelfile, or of the fields of /api/create. `source` is the value of FROM.

    None or empty: not set, the base's own value applies. `parameters` are as in `reference.ModelLayer`.
    """

    source: str
    system: str | None = None
    parameters: Mapping[str, int | float] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    messages: tuple[Mapping[str, str], ...] = ()
    license: tuple[str, ...] = ()
    template: str | None = None
    requires: str | None = None


def read_modelfile(raw: bytes) -> Modelfile:
    """Parses a Modelfile. Raises RequestError with the line of an error."""
    if len(raw) > MOST_BYTES:
        raise RequestError(f"the Modelfile is {len(raw)} bytes long, the limit is {MOST_BYTES}")
    fields: dict[str, Any] = {"parameters": {}, "stop": [], "messages": [], "license": []}
    for line, name, value in _instructions(_decoded(raw)):
        try:
            _take(fields, name, value)
        except RequestError as error:
            raise RequestError(f"Modelfile line {line}: {error}") from None
    if "source" not in fields:
        raise RequestError("the Modelfile has no FROM line")
    parameters.checked_stops(fields["stop"])
    values: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in fields.items()}
    return Modelfile(**values)


def check_spelling(modelfile: Modelfile) -> None:
    """Raises RequestError, naming the field, for a text that no Modelfile can contain: every model can be written as
    one."""
    for name, text in _texts(modelfile):
        _check_spelling(name, text)


def can_be_spelled(text: str) -> bool:
    """Whether a Modelfile can contain `text`: no control characters, and no line that ends with `\"\"\"`."""
    return not _CONTROL.search(text) and _spelled(text) is not None


def write_modelfile(modelfile: Modelfile) -> str:
    """The Modelfile's text, which parses to `modelfile` again. Its texts satisfy `can_be_spelled`."""
    lines = [f"FROM {modelfile.source}"]
    for name in ("template", "system"):
        value = getattr(modelfile, name)
        if value is not None:
            lines.append(f"{name.upper()} {_spelled(value)}")
    lines += [f"PARAMETER {name} {value}" for name, value in modelfile.parameters.items()]
    lines += [f"PARAMETER stop {_spelled(stop)}" for stop in modelfile.stop]
    lines += [f"MESSAGE {message['role']} {_spelled(message['content'])}" for message in modelfile.messages]
    lines += [f"LICENSE {_spelled(license_)}" for license_ in modelfile.license]
    if modelfile.requires is not None:
        lines.append(f"REQUIRES {modelfile.requires}")
    return "\n".join(lines) + "\n"


def _decoded(raw: bytes) -> str:
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding, name = ("utf-16", "UTF-16") if wide else ("utf-8-sig", "UTF-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise RequestError(f"the Modelfile is not {name}: byte {error.start}") from None
    odd = _CONTROL.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise RequestError(f"Modelfile line {line}: it contains the character {odd[0]!a}")
    return text


def _instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Each instruction: its first line, its name in upper case, and its value without quotes.

    The name of PARAMETER and MESSAGE is two words, the second as written.
    """
    at, line = 0, 1
    while at < len(text):
        end = _line_end(text, at)
        first = text[at:end].lstrip(_BLANKS)
        if first and not first.startswith("#"):
            name, begin = _head(text, end - len(first), end, line)
            value, end = _value(text, begin, line, name)
            yield line, name, value
        after = _after(text, end)
        line += len(_LINE_END.findall(text, at, after))
        at = after


def _head(text: str, start: int, end: int, line: int) -> tuple[str, int]:
    """The name of the instruction at `start`, and where its value begins."""
    word = _HEAD.match(text, start, end)
    name = word["name"].upper() if word else ""
    if word is None or (name not in INSTRUCTIONS and name not in REFUSED):
        raise RequestError(
            f"Modelfile line {line}: {quoted(text[start:end])}: expected one of {', '.join(INSTRUCTIONS)}"
        )
    if name in ("PARAMETER", "MESSAGE"):
        word = _SECOND.match(text, word.end("name"), end)
        if word is None:
            raise RequestError(f"Modelfile line {line}: {name} has no name after it")
        name = f"{name} {word['name']}"
    if word.end() == word.end("name"):
        raise RequestError(f"Modelfile line {line}: {name} has no value")
    return name, word.end()


def _value(text: str, begin: int, line: int, head: str) -> tuple[str, int]:
    """The value that begins at `begin`, and the end of its last line."""
    end = _line_end(text, begin)
    given = text[begin:end].strip()
    quote = next((quote for quote in ('"""', '"') if given.startswith(quote)), "")
    if not quote:
        return given, end
    start = last = text.index(quote, begin)
    while True:
        close = last + len(text[last:end].rstrip())
        if close > last and close - start >= 2 * len(quote) and text.endswith(quote, start, close):
            return text[start + len(quote) : close - len(quote)], end
        if end == len(text):
            raise RequestError(f"Modelfile line {line}: the {quote} of {head} is not closed at the end of a line")
        last = _after(text, end)
        end = _line_end(text, last)


def _line_end(text: str, at: int) -> int:
    found = _LINE_END.search(text, at)
    return found.start() if found else len(text)


def _after(text: str, end: int) -> int:
    found = _LINE_END.match(text, end)
    return found.end() if found else end


def _take(fields: dict[str, Any], name: str, value: str) -> None:
    word, _, part = name.partition(" ")
    if word in REFUSED:
        raise RequestError(f"{word} is refused: {REFUSED[word]}")
    if word == "FROM":
        if "source" in fields:
            raise RequestError("FROM occurs more than once")
        if not value:
            raise RequestError("FROM has no value")
        fields["source"] = value
    elif word == "PARAMETER" and part == "stop":
        fields["stop"].append(parameters.checked_stop(value))
    elif word == "PARAMETER":
        if part not in parameters.IGNORED:
            fields["parameters"][part] = parameters.from_text(part, value)
    elif word == "MESSAGE":
        fields["messages"].append(checked_message(part, value))
    elif word == "LICENSE":
        fields["license"].append(value)
    elif word == "REQUIRES":
        fields["requires"] = checked_version(value)
    else:
        fields[word.lower()] = value


def checked_message(role: str, content: str) -> dict[str, str]:
    if role not in ROLES:
        raise RequestError(f"the role of a MESSAGE must be system, user or assistant, not {quoted(role)}")
    return {"role": role, "content": content}


def checked_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise RequestError(f"REQUIRES must be a version such as 0.14.0, not {quoted(text)}")
    return text.removeprefix("v")


def _texts(modelfile: Modelfile) -> Iterator[tuple[str, str]]:
    """Every text of a model's own, with its field."""
    if modelfile.system is not None:
        yield "system", modelfile.system
    yield from (("the parameter stop", stop) for stop in modelfile.stop)
    yield from ((f"messages[{i}]", message["content"]) for i, message in enumerate(modelfile.messages))
    yield from (("license", license_) for license_ in modelfile.license)


def _check_spelling(name: str, text: str) -> None:
    odd = _CONTROL.search(text)
    if odd:
        raise RequestError(f"{name} contains the character {odd[0]!a}, which no Modelfile can contain")
    if _spelled(text) is None:
        raise RequestError(f'{name} has a line that ends with """, which no Modelfile can contain')


def _spelled(value: str) -> str | None:
    """`value` as the grammar writes it: bare, quoted, or in triple quotes, the first that parses to the same value;
    None if there is none."""
    forms = [f'"{value}"', f'"""{value}"""']
    if not _LINE_END.search(value):
        forms.insert(0, value)
    for form in forms:
        try:
            if _value(form, 0, 1, "") == (value, len(form)):
                return form
        except RequestError:
            continue
    return None
