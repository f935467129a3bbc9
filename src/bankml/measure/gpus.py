"""GPUs whose load the kernel reports (amdgpu does), without a vendor's library."""

from dataclasses import dataclass
from pathlib import Path

DRM = Path("/sys/class/drm")


@dataclass(frozen=True)
class Gpu:
    """`name` is the kernel's (`card0`). GTT is the machine's memory used by the GPU. None: not reported."""

    name: str
    busy_percent: int | None
    vram_used_bytes: int | None
    vram_total_bytes: int | None
    gtt_used_bytes: int | None
    gtt_total_bytes: int | None


def read_gpus(drm: Path = DRM) -> tuple[Gpu, ...]:
    """The cards that report anything, in their order."""
    cards = [card for card in drm.glob("card*") if card.name[4:].isdigit()]  # `card0-HDMI-A-1` is a connector
    found = (_gpu(card.name, card / "device") for card in sorted(cards, key=lambda card: int(card.name[4:])))
    return tuple(gpu for gpu in found if gpu is not None)


def _gpu(name: str, device: Path) -> Gpu | None:
    values = [
        _number(device / file)
        for file in (
            "gpu_busy_percent",
            "mem_info_vram_used",
            "mem_info_vram_total",
            "mem_info_gtt_used",
            "mem_info_gtt_total",
        )
    ]
    return None if all(value is None for value in values) else Gpu(name, *values)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
