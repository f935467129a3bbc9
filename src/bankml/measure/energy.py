"""Energy of the processor's packages from their counters (RAPL), where the kernel permits reading them.

Linux shows a counter in `/sys/class/powercap/intel-rapl:N` for each package, on AMD as on Intel; since the kernel's
5.10 it is the administrator's alone to read. Where there is none, nothing is known: never a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
_MICRO = 1_000_000


@dataclass(frozen=True)
class Counter:
    """A package's energy in microjoules, which wraps to 0 after `most`."""

    value: int
    most: int


Counters = Mapping[str, Counter]
"""A moment's counters, by the folder that shows them."""


def read_counters(powercap: Path = POWERCAP) -> Counters | None:
    """Every package's counter now; None where there is none or one of them may not be read."""
    counters = {}
    try:
        for zone in powercap.glob("intel-rapl:*"):
            # "intel-rapl:0:0" is a part of a package, and "psys" the complete board
            if zone.name.count(":") == 1 and (zone / "name").read_text().startswith("package"):
                value, most = (int((zone / file).read_text()) for file in ("energy_uj", "max_energy_range_uj"))
                counters[zone.name] = Counter(value, most)
    except (OSError, ValueError):
        return None
    return counters or None


def joules(before: Counters | None, after: Counters | None) -> float | None:
    """Energy of all packages between two readings; None unless both succeeded for the same packages.

    A counter that was passed by its end once is understood; twice, which takes minutes, it cannot be.
    """
    if before is None or after is None or before.keys() != after.keys():
        return None
    spent = 0
    for name, counter in after.items():
        difference = counter.value - before[name].value
        spent += difference if difference >= 0 else difference + counter.most
    return spent / _MICRO
