"""Usage of the machine and some of its processes, from two readings a quarter of a second apart."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bankml.errors import UsageError
from bankml.measure.energy import joules, read_counters
from bankml.measure.gpus import Gpu, read_gpus

if TYPE_CHECKING:
    import psutil

INTERVAL = 0.25
"""Seconds between the two readings."""


@dataclass(frozen=True)
class Watched:
    """A process to be measured, and its role: `gateway`, `engine`."""

    name: str
    pid: int


@dataclass(frozen=True)
class ProcessUsage:
    """`cpu_percent` is of one core: two busy threads are 200. Both are None for a process that has ended."""

    name: str
    pid: int
    rss_bytes: int | None
    cpu_percent: float | None


@dataclass(frozen=True)
class ResourceUsage:
    """One sample. `time` is in seconds since the epoch, `cpu_percent` of all `cores` together.

    `memory_available_bytes` is what programs can take without swapping, as the kernel estimates it. `package_watts` is
    None where the processor's counters cannot be read, and `gpus` has those the kernel reports on.
    """

    time: float
    interval_ms: float
    cores: int
    cpu_percent: float
    memory_total_bytes: int
    memory_available_bytes: int
    swap_total_bytes: int
    swap_used_bytes: int
    processes: tuple[ProcessUsage, ...]
    package_watts: float | None
    gpus: tuple[Gpu, ...]

    def as_json(self) -> dict[str, object]:
        """The JSON of `GET /bankml/usage` and `bankml usage`."""
        return {
            "time": round(self.time, 3),
            "interval_ms": round(self.interval_ms, 1),
            "cores": self.cores,
            "cpu_percent": self.cpu_percent,
            "memory": {
                "total_bytes": self.memory_total_bytes,
                "available_bytes": self.memory_available_bytes,
                "used_bytes": self.memory_total_bytes - self.memory_available_bytes,
            },
            "swap": {"total_bytes": self.swap_total_bytes, "used_bytes": self.swap_used_bytes},
            "processes": [dict(vars(process)) for process in self.processes],
            "package_watts": self.package_watts,
            "gpus": [dict(vars(gpu)) for gpu in self.gpus],
            "gpu_limiter": None,  # the state of a limiter of the GPU's load; bankML has none
        }


def watch(pids: Sequence[int]) -> tuple[Watched, ...]:
    """The processes with these ids, with their own names as roles. Raises UsageError where there is none."""
    import psutil

    watched = []
    for pid in pids:
        try:
            watched.append(Watched(psutil.Process(pid).name(), pid))
        except (psutil.Error, ValueError, OverflowError):
            raise UsageError(f"there is no process {pid}") from None
    return tuple(watched)


def measure(watched: Sequence[Watched], interval: float = INTERVAL) -> ResourceUsage:
    """Reads all counters, sleeps `interval` seconds, and reads them again."""
    import psutil

    processes = [_Process(each) for each in watched]
    machine, energy, began = psutil.cpu_times()._asdict(), read_counters(), time.monotonic()
    time.sleep(interval)
    seconds = time.monotonic() - began
    spent = joules(energy, read_counters())
    # read at one moment, before the slower queries
    busy, used = _busy_percent(machine, psutil.cpu_times()._asdict()), tuple(process.used() for process in processes)
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return ResourceUsage(
        time=time.time(),
        interval_ms=seconds * 1000,
        cores=psutil.cpu_count() or 1,
        cpu_percent=busy,
        memory_total_bytes=memory.total,
        memory_available_bytes=memory.available,
        swap_total_bytes=swap.total,
        swap_used_bytes=swap.used,
        processes=used,
        package_watts=None if spent is None else round(spent / seconds, 2),
        gpus=read_gpus(),
    )


class _Process:
    """A process between the two readings. Another process that gets its id meanwhile is not mistaken for it."""

    def __init__(self, watched: Watched) -> None:
        import psutil

        self._watched = watched
        self._process: psutil.Process | None = None
        self._seconds, self._looked = 0.0, 0.0
        with contextlib.suppress(psutil.Error):
            self._process = psutil.Process(watched.pid)
            self._seconds, self._looked = self._look(self._process)

    def used(self) -> ProcessUsage:
        import psutil

        name, pid = self._watched.name, self._watched.pid
        if self._process is not None:
            with contextlib.suppress(psutil.Error):
                seconds, looked = self._look(self._process)
                if self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE:
                    percent = 100 * (seconds - self._seconds) / (looked - self._looked)
                    return ProcessUsage(name, pid, self._process.memory_info().rss, round(percent, 1))
        return ProcessUsage(name, pid, None, None)

    @staticmethod
    def _look(process: psutil.Process) -> tuple[float, float]:
        """Seconds of processor time it has used, and the current time."""
        times = process.cpu_times()
        return times.user + times.system, time.monotonic()


def _busy_percent(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """Of all cores' time between two looks, the part that was neither idle nor waiting for a disk.

    A guest's time is left out: it is in the user's already.
    """
    spent = {name: after[name] - before[name] for name in after if not name.startswith("guest")}
    total, idle = sum(spent.values()), spent["idle"] + spent.get("iowait", 0.0)
    return round(100 * (total - idle) / total, 1) if total > 0 else 0.0
