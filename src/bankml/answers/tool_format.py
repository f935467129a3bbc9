"""The format of a template's tool calls, by comparing renderings (see `analysis`)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from bankml.text.capabilities import Capabilities
from bankml.text.markers import WHITE_SPACE, Difference, difference, trim
from bankml.text.reasoning import ReasoningMarks, Render, probe_tools

FIRST, SECOND = "FFF_FIRST_FUN_F", "SSS_SECOND_FUN_S"
ARG_FIRST, ARG_SECOND = "AA_ARG_FST_AA", "BB_ARG_SND_BB"
ANSWER = "A_ASST_MSG I can help END_A"
THOUGHT = "REASON_PART I am thinking END_R"
USER = {"role": "user", "content": "U_USER_MSG Hello END_U"}
ID_FIRST, ID_SECOND, ID_OTHER = "call00001", "call00002", "call99999"

MARKER = r"(?:<[^>]*>|\[[^\]]*\])"
SPACE = rf"[{WHITE_SPACE}]*+"
NO_MARKER = rf"(?:(?!{MARKER}).)*+"
"""Text up to the next marker."""

LONGEST_TEXT = 16 << 10
"""Of a rendering with two small tools; searches for markers that are never closed take the square of it."""

Kind = Literal["", "json", "tagged json", "tagged"]
IdPlace = Literal["", "before name", "before arguments", "after arguments"]


@dataclass(frozen=True)
class JsonKeys:
    """The keys of a call that is one JSON object. `order`: as the template writes them."""

    function: str = "function"
    name: str = "name"
    arguments: str = "arguments"
    id: str = ""
    made_id: str = ""
    name_is_key: bool = False
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolFormat:
    """What stands around tool calls; "" for what there is none of.

    `kind` "" is no format. `section_*` stands around all calls, `call_*` around each. `name_*`, `arguments_separator`
    and `close` belong to the function, `arguments_*` to its arguments, `argument_name_*`, `value_*` and `separator` to
    one. `array`: the calls are a JSON array. `space_between`: white space may precede the end of a call.
    """

    kind: Kind = ""
    section_start: str = ""
    section_end: str = ""
    call_start: str = ""
    call_end: str = ""
    array: bool = False
    keys: JsonKeys = JsonKeys()
    name_prefix: str = ""
    name_suffix: str = ""
    arguments_separator: str = ""
    close: str = ""
    argument_name_prefix: str = ""
    argument_name_suffix: str = ""
    value_prefix: str = ""
    value_suffix: str = ""
    separator: str = ""
    id_place: IdPlace = ""
    id_prefix: str = ""
    id_suffix: str = ""
    space_between: bool = False

    @property
    def trigger(self) -> str:
        """What calls begin with."""
        return self.section_start or self.call_start

    @property
    def markers(self) -> tuple[str, ...]:
        return (
            *(self.section_start, self.section_end, self.call_start, self.call_end),
            *(self.name_prefix, self.name_suffix, self.arguments_separator, self.close),
            *(self.argument_name_prefix, self.argument_name_suffix, self.separator),
            *(self.value_prefix, self.value_suffix, self.id_prefix, self.id_suffix),
        )


def call(name: str, arguments: Mapping[str, Any], call_id: str = ID_FIRST) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": dict(arguments)}}


_BOTH = {ARG_FIRST: "XXXX", ARG_SECOND: "YYYY"}
_CALL, _CALL_2 = call(FIRST, _BOTH), call(SECOND, _BOTH, ID_SECOND)
_ONE_ARGUMENT, _OTHER_VALUE = call(FIRST, {ARG_FIRST: "XXXX"}), call(FIRST, {ARG_FIRST: "YYYY"})
_OTHER_ARGUMENT, _OTHER_ID = call(FIRST, {ARG_SECOND: "YYYY"}), call(FIRST, _BOTH, ID_OTHER)


def calling(*calls: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


class Probe:
    """Renders an answer with tools and compares two."""

    def __init__(self, render: Render) -> None:
        self._render = render

    def text(self, answer: Mapping[str, Any]) -> str | None:
        text = self._render([USER, answer], False, True, probe_tools())
        return None if text is None or len(text) > LONGEST_TEXT else text

    def compare(self, left: Mapping[str, Any], right: Mapping[str, Any]) -> Difference | None:
        """None where the template cannot render one of them."""
        a, b = self.text(left), self.text(right)
        return None if a is None or b is None else difference(a, b)

    def compare_calls(self, left: Mapping[str, Any], right: Mapping[str, Any]) -> Difference | None:
        return self.compare(calling(left), calling(right))


def find(render: Render, reasoning: ReasoningMarks, capabilities: Capabilities) -> ToolFormat:
    probe = Probe(render)
    split = probe.compare({"role": "assistant", "content": ANSWER}, calling(_CALL))
    if split is None or not split.right:
        return ToolFormat()
    haystack = split.right
    kind: Kind = "tagged"
    if _quoted_in_json(FIRST, haystack):
        kind = "json"
    elif _quoted_in_json(ARG_FIRST, haystack):
        kind = "tagged json"
    for mark in (reasoning.start, reasoning.end):
        if mark:
            haystack = haystack.replace(mark, "", 1)
    if kind == "json":
        found = _json_format(haystack)
        if capabilities.parallel_tool_calls:
            found = _json_per_call(probe, found)
        return replace(found, section_end=trim(found.section_end), call_end=trim(found.call_end))
    found = replace(_sections(haystack), kind=kind)
    found = replace(found, section_end=trim(found.section_end), call_end=trim(found.call_end))
    if capabilities.parallel_tool_calls:
        found = _per_call(probe, found)
    found = _function(probe, found)
    if kind == "tagged":
        found = _argument_values(probe, _argument_names(probe, found))
    return _ids(probe, found)


def _quoted_in_json(needle: str, text: str) -> bool:
    return re.search(rf'[{{:]{SPACE}"{needle}"', text) is not None


# ---- a call is one JSON object


def _json_format(text: str) -> ToolFormat:
    begin, end = text.find("{"), text.rfind("}")
    cut = text[begin : end + 1]
    keys = _json_keys(json.loads(cut))
    keys = replace(keys, order=_order(keys, text))
    wrapped = re.search(rf"(\[{SPACE}){re.escape(cut)}({SPACE}\])", text)
    if wrapped:
        begin, end = begin - len(wrapped[1]), end + len(wrapped[2])
    start, behind = text[:begin].lstrip(WHITE_SPACE), trim(text[end + 1 :])
    if wrapped and behind == "]":
        behind = ""
    return ToolFormat("json", start, behind, array=wrapped is not None, keys=keys)


def _json_keys(value: Mapping[str, Any]) -> JsonKeys:
    keys = JsonKeys()
    for key, inner in value.items():
        if key == FIRST:
            keys = replace(keys, name_is_key=True, name="", arguments="")
            continue
        if isinstance(inner, dict) and ARG_FIRST not in json.dumps(inner):
            keys = replace(keys, function=key)
            for inner_key, one in inner.items():
                keys = _registered(keys, f"{key}.{inner_key}", inner_key, one)
        keys = _registered(keys, key, key, inner)
    return keys


def _registered(keys: JsonKeys, path: str, key: str, value: Any) -> JsonKeys:
    """What the value tells of its key."""
    if isinstance(value, str) and "call0000" in value:
        return replace(keys, id=path)
    if value == FIRST:
        return replace(keys, name=path)
    if ARG_FIRST in json.dumps(value):
        return replace(keys, arguments=path)
    return replace(keys, made_id=path) if "id" in key else keys


def _order(keys: JsonKeys, text: str) -> tuple[str, ...]:
    named = [key for key in (keys.name, keys.arguments, keys.id, keys.made_id) if key]
    places = sorted((at if (at := text.find(key)) >= 0 else len(text) + 1, key) for key in named)
    return tuple(key for _, key in places)


def _json_per_call(probe: Probe, found: ToolFormat) -> ToolFormat:
    split = probe.compare(calling(_CALL), calling(_CALL, _CALL_2))
    if split is None or not found.section_start or found.section_start not in split.right:
        return found
    return _moved_to_call(found)


def _moved_to_call(found: ToolFormat) -> ToolFormat:
    return replace(found, call_start=found.section_start, call_end=found.section_end, section_start="", section_end="")


# ---- tags around the function


def _sections(text: str) -> ToolFormat:
    pointed = rf"(<(?:(?!>|{FIRST}).)*+){FIRST}(?!{SPACE}<)[^>]*>{SPACE}"
    square = rf"(\[(?:(?!\]|{FIRST}).)*+){FIRST}(?!{SPACE}\[[^\]]*\]){SPACE}"
    in_marker = re.search(f"{pointed}|{square}", text, re.DOTALL)
    mark = in_marker[0] if in_marker else FIRST
    escaped = re.escape(mark)
    twice = re.search(rf"({MARKER}{SPACE})({MARKER}{SPACE})((?:(?!{escaped}).)*+){escaped}(.*)", text, re.DOTALL)
    if twice:
        prefix = (in_marker[1] or in_marker[2] or "") if in_marker else ""
        ends = re.search(rf"({MARKER}{SPACE})({MARKER}{SPACE})\Z", twice[4], re.DOTALL)
        call_end, section_end = (ends[1], ends[2]) if ends else ("", "")
        return ToolFormat("", twice[1], section_end, twice[2], call_end, name_prefix=prefix)
    once = re.search(rf"({MARKER}{SPACE}){escaped}(.*)", text, re.DOTALL)
    if once is None:
        return ToolFormat()
    last = re.search(rf"({MARKER}{SPACE})\Z", once[2], re.DOTALL)
    return ToolFormat("", once[1], last[1] if last else "")


def _per_call(probe: Probe, found: ToolFormat) -> ToolFormat:
    one, two = probe.text(calling(_CALL)), probe.text(calling(_CALL, _CALL_2))
    if one is None or two is None:
        return found
    split = difference(one, two)
    second = difference(split.suffix, split.right).right.lstrip(WHITE_SPACE)
    if found.section_start and second.startswith(found.section_start):
        found = _moved_to_call(found)
    if found.call_end and one.count(found.call_end) == two.count(found.call_end) > 0:
        found = replace(found, section_end=found.call_end, call_end="")
    return found


def _function(probe: Probe, found: ToolFormat) -> ToolFormat:
    split = probe.compare(calling(_CALL), calling(_CALL_2))
    if split is None or FIRST not in split.left or SECOND not in split.right:
        return found
    mark = found.call_start or found.section_start
    if mark and mark in split.prefix:
        found = replace(found, name_prefix=split.prefix[split.prefix.rfind(mark) + len(mark) :])
    named = re.match(rf"((?:(?!{FIRST}).)*+){FIRST}({NO_MARKER})", split.left, re.DOTALL)
    if named:
        found = replace(found, name_prefix=found.name_prefix + named[1], name_suffix=named[2])
    found = _before_arguments(found, split.suffix)
    return replace(found, close=_close(probe, found, split).lstrip(WHITE_SPACE))


def _before_arguments(found: ToolFormat, suffix: str) -> ToolFormat:
    if found.kind == "tagged json":
        extended = re.match(rf"((?:{MARKER}|(?!{MARKER})[^{{\[])*+){NO_MARKER}{MARKER}", suffix, re.DOTALL)
        return replace(found, name_suffix=found.name_suffix + extended[1]) if extended else found
    more = re.match(f"({NO_MARKER})", suffix, re.DOTALL)
    if more is None:
        return found
    found = replace(found, name_suffix=found.name_suffix + more[1])
    argument = rf"{MARKER}{SPACE}(?:{ARG_FIRST}|{ARG_SECOND})"
    separator = re.match(rf"((?:(?!{argument}).)*+){argument}", suffix[len(more[1]) :], re.DOTALL)
    return replace(found, arguments_separator=trim(separator[1])) if separator else found


def _close(probe: Probe, found: ToolFormat, split: Difference) -> str:
    """What stands between the last argument and the end of the call or section."""
    mark = found.call_end or found.section_end
    if mark:
        behind = split.suffix.partition(mark)[0]
    else:
        plain = probe.compare(calling(_CALL), {"role": "assistant", "content": ANSWER})
        if plain is None:
            return found.close
        behind = plain.left[plain.left.find("YYYY") + 4 :]
    if not behind:
        return found.close
    if found.kind == "tagged":
        tagged = re.match(rf"(?:(?!YYYY).)*+YYYY{SPACE}{MARKER}{SPACE}(.*)", behind, re.DOTALL)
        return tagged[1] if tagged else found.close
    value = re.match(r"(?:(?!YYYY).)*+YYYY(.*)", behind, re.DOTALL)
    if value:
        last = max(value[1].rfind("}"), value[1].rfind("]"))
        if 0 <= last < len(value[1]) - 1:
            return value[1][last + 1 :].lstrip(WHITE_SPACE)
    return found.close


# ---- arguments in tags


def _argument_names(probe: Probe, found: ToolFormat) -> ToolFormat:
    split = probe.compare_calls(_ONE_ARGUMENT, _OTHER_ARGUMENT)
    if split is None or not split.left or not split.right:
        return found
    left = re.search(rf'((?:(?!{ARG_FIRST}).)*+){ARG_FIRST}([^"X]*+)', split.left, re.DOTALL)
    right = re.search(rf'((?:(?!{ARG_SECOND}).)*+){ARG_SECOND}([^"Y]*+)', split.right, re.DOTALL)
    if left and right and left[1] and (left[1], left[2]) == (right[1], right[2]):
        return replace(found, argument_name_prefix=left[1], argument_name_suffix=left[2])
    if split.left.startswith(ARG_FIRST) and split.right.startswith(ARG_SECOND):
        found = replace(found, argument_name_prefix=_from_last_marker(split.prefix))
        suffix = re.search(rf"{NO_MARKER}{MARKER}{SPACE}", split.left[len(ARG_FIRST) :] + split.suffix, re.DOTALL)
        return replace(found, argument_name_suffix=suffix[0]) if suffix else found
    return found


def _from_last_marker(text: str) -> str:
    """The last marker and what follows it; all of `text` without one."""
    last = re.search(rf"{MARKER}{NO_MARKER}\Z", text, re.DOTALL)
    return last[0] if last else text


def _argument_values(probe: Probe, found: ToolFormat) -> ToolFormat:
    split = probe.compare_calls(_ONE_ARGUMENT, _OTHER_VALUE)
    if split is None or (split.left, split.right) != ("XXXX", "YYYY"):
        return found
    name_end = ARG_FIRST + found.argument_name_suffix
    prefix = split.prefix
    if name_end in prefix:
        prefix = prefix[prefix.rfind(name_end) + len(name_end) :]
    if prefix:
        found = replace(found, value_prefix=_from_last_marker(prefix))
    suffix = split.suffix
    end = found.close or found.call_end or found.section_end
    if end:
        suffix = suffix.partition(end)[0]
    return replace(found, value_suffix=suffix) if trim(suffix) else found


# ---- a call's id


def _ids(probe: Probe, found: ToolFormat) -> ToolFormat:
    split = probe.compare_calls(_CALL, _OTHER_ID)
    if split is None or not (split.left or split.right):
        return found
    in_prefix, in_suffix = FIRST in split.prefix, FIRST in split.suffix
    if in_prefix and not in_suffix:
        found = _id_behind_name(found, split)
    elif in_suffix and not in_prefix:
        found = replace(
            found,
            id_place="before name",
            id_prefix=_last_marker(split.prefix),
            id_suffix=_first_marker(split.suffix.partition(FIRST)[0]),
        )
    if found.id_place and found.id_suffix and found.call_end.startswith(found.id_suffix):
        found = replace(found, call_end="")
    return found


def _id_behind_name(found: ToolFormat, split: Difference) -> ToolFormat:
    name_at = split.prefix.rfind(FIRST)
    arguments_at = split.prefix.find("{", name_at)
    if "{" in split.suffix and arguments_at < 0:
        behind = split.prefix[name_at + len(FIRST) :]
        common = "call"
        prefix = re.search(rf"({MARKER})(?:(?!{MARKER})(?!{common}).)*+{common}", behind, re.DOTALL)
        suffix = re.search(rf"(?:(?!{MARKER})[^{{])*+({MARKER})", split.suffix, re.DOTALL)
        return replace(
            found,
            id_place="before arguments",
            id_prefix=prefix[1] if prefix else _last_marker(behind),
            id_suffix=suffix[1] if suffix else found.id_suffix,
        )
    if arguments_at >= 0:
        behind = split.prefix[arguments_at:]
        at = behind.rfind("}")
        prefix_mark = _last_marker(behind[at + 1 :]) if at >= 0 else found.id_prefix
        return replace(found, id_place="after arguments", id_prefix=prefix_mark, id_suffix=_first_marker(split.suffix))
    return found


def _last_marker(text: str) -> str:
    last = re.search(rf"({MARKER}){NO_MARKER}\Z", text, re.DOTALL)
    return last[1] if last else ""


def _first_marker(text: str) -> str:
    first = re.search(MARKER, text)
    return first[0] if first else ""
