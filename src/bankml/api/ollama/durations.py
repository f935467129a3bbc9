"""Durations and moments as Ollama writes them: Go's duration strings, nanoseconds, RFC 3339 with a fraction."""

import math
import re
from datetime import UTC, datetime
from typing import Any

from bankml.api.reading.fields import refuse, shown

NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5
    "μs": 1_000,  # U+03BC
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
"""The units of a duration string."""

FOREVER = math.inf
"""The seconds of a negative keep-alive: the model stays until another is asked for."""

KEEP_ALIVE = 300.0
"""Seconds that a model stays where nobody says how long: Ollama's five minutes."""

LONGEST_NS = 2**63 - 1
"""The longest duration Go knows, some 292 years: what Ollama calls for ever."""

_PART = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"([-+]?)(0|(?:{_PART})+)", re.ASCII)
_NUMBER_AND_UNIT = re.compile(r"([0-9]*)\.?([0-9]*)([^0-9.]+)")

FORMS = 'expected a duration such as "5m" or "1h30m", or a number of seconds'


def parse_duration(text: str) -> int | None:
    """Nanoseconds of a Go duration string, "1h30m" or "-1.5s" or "0"; None for anything else, or beyond 64 bits."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    total = 0
    for whole, fraction, unit in _NUMBER_AND_UNIT.findall(found[2]):
        scale = 10 ** len(fraction)
        total += int((whole or "0") + fraction) * NANOSECONDS[unit] // scale
        if total > LONGEST_NS:
            return None
    return -total if found[1] == "-" else total


def keep_alive_seconds(value: Any, path: str = "keep_alive") -> float:
    """Seconds that a model stays after its answer: 0 for no longer, FOREVER for a negative value.

    `value` is a duration string or a number of seconds. Raises RequestError naming `path`.
    """
    if isinstance(value, str) and len(value) <= 100:
        nanoseconds = parse_duration(value)
        if nanoseconds is None:
            raise refuse(path, f"{FORMS}, but got {shown(value)}")
        seconds = nanoseconds / 1e9
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise refuse(path, f"{FORMS}, but got {shown(value)}")
    return FOREVER if seconds < 0 or seconds > LONGEST_NS / 1e9 else seconds


def keep_alive_option(text: str) -> float:
    """The same as it is written on a command line, where a number of seconds is text too: `5m`, `300`, `-1`."""
    number = re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,9})?", text, re.ASCII)
    return keep_alive_seconds(float(text) if number else text, "--keep-alive")


def moment(nanoseconds: int) -> str:
    """A time since the epoch as Go writes it: RFC 3339 in UTC, the fraction without zeros at its end."""
    seconds, fraction = divmod(nanoseconds, 10**9)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f"{fraction:09d}".rstrip("0")
    return f"{text}.{digits}Z" if digits else f"{text}Z"


def nanoseconds_of(seconds: float) -> int:
    """A measured time in whole nanoseconds."""
    return round(seconds * 1e9)
