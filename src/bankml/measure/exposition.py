"""Metrics as text, in the two formats that Prometheus reads.

The text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats) and OpenMetrics 1.0 differ, for what is
written here, in the name of a counter's family, in the unit's line and in the last line.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple

from bankml.measure.counters import Distribution

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

END = b"# EOF\n"

Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """`suffix` follows the family's name: `_total` of a counter, `_bucket` of a histogram."""

    value: float
    labels: Labels = ()
    suffix: str = ""


@dataclass(frozen=True)
class Family:
    """`name` without a counter's `_total`; where it has a `unit`, it ends in that."""

    name: str
    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    samples: Sequence[Sample]
    unit: str = ""


def counter(name: str, help_: str, *samples: tuple[float, Labels], unit: str = "") -> Family:
    return Family(name, "counter", help_, [Sample(value, labels, "_total") for value, labels in samples], unit)


def gauge(name: str, help_: str, value: float, unit: str = "") -> Family:
    return Family(name, "gauge", help_, [Sample(value)], unit)


def info(name: str, help_: str, labels: Labels) -> Family:
    return Family(name, "info", help_, [Sample(1, labels, "_info")])


def histogram(name: str, help_: str, seen: Distribution, unit: str = "") -> Family:
    bounds = [*(_number(bound) for bound in seen.bounds), "+Inf"]
    running = list(accumulate(seen.counts))
    samples = [Sample(count, (("le", bound),), "_bucket") for bound, count in zip(bounds, running, strict=True)]
    samples += [Sample(seen.total, suffix="_sum"), Sample(running[-1], suffix="_count")]
    return Family(name, "histogram", help_, samples, unit)


def written(families: Iterable[Family], openmetrics: bool = False) -> bytes:
    """All families, with samples or without. OpenMetrics requires `END` after the last."""
    lines: list[str] = []
    for family in families:
        lines += _openmetrics_head(family) if openmetrics else _text_head(family)
        lines += [f"{family.name}{s.suffix}{_labels(s.labels)} {_number(s.value)}" for s in family.samples]
    return "".join(line + "\n" for line in lines).encode()


def _text_head(family: Family) -> list[str]:
    """In this format a counter's family has the name of its samples, and there is no type for a version."""
    name = family.name + {"counter": "_total", "info": "_info"}.get(family.kind, "")
    kind = "gauge" if family.kind == "info" else family.kind
    return [f"# HELP {name} {family.help}", f"# TYPE {name} {kind}"]


def _openmetrics_head(family: Family) -> list[str]:
    unit = [f"# UNIT {family.name} {family.unit}"] if family.unit else []
    return [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}", *unit]


@lru_cache(maxsize=256)
def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """A float has a decimal point, which OpenMetrics requires of a bucket's bound."""
    return repr(value)
