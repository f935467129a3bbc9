"""What the kernel shows of energy and GPUs, read from folders made like its own."""

import pytest

from bankml.measure.energy import Counter, joules, read_counters
from bankml.measure.gpus import Gpu, read_gpus


def zone(powercap, folder, name, energy, most=262143328850):
    (powercap / folder).mkdir(parents=True)
    for file, value in (("name", name), ("energy_uj", energy), ("max_energy_range_uj", most)):
        (powercap / folder / file).write_text(f"{value}\n")


def test_packages_are_summed_and_their_parts_left_out(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    zone(tmp_path, "intel-rapl:1", "package-1", 5_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 9)
    zone(tmp_path, "intel-rapl:2", "psys", 9)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 9)  # the first one again, by another way
    before = read_counters(tmp_path)
    assert set(before) == {"intel-rapl:0", "intel-rapl:1"}
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("3500000\n")
    assert joules(before, read_counters(tmp_path)) == 2.5


def test_a_counter_that_starts_again():
    assert joules({"p": Counter(90, 100)}, {"p": Counter(15, 100)}) == 25 / 1e6


@pytest.mark.parametrize("before", [None, {}, {"q": Counter(1, 9)}])
def test_what_cannot_be_compared_is_not_guessed(before):
    assert joules(before, {"p": Counter(1, 9)}) is None
    assert joules({"p": Counter(1, 9)}, before) is None


def test_without_counters_nothing_is_known(tmp_path):
    assert read_counters(tmp_path / "absent") is None
    assert read_counters(tmp_path) is None
    zone(tmp_path, "intel-rapl:0", "package-0", "no number")
    assert read_counters(tmp_path) is None


def test_gpus_that_tell_and_those_that_do_not(tmp_path):
    told = {"gpu_busy_percent": 37, "mem_info_vram_used": 5, "mem_info_vram_total": 10, "mem_info_gtt_total": 20}
    for card, values in (("card10", told), ("card2", {"gpu_busy_percent": 0}), ("card3", {}), ("card0-HDMI-A-1", told)):
        (tmp_path / card / "device").mkdir(parents=True)
        for file, value in values.items():
            (tmp_path / card / "device" / file).write_text(f"{value}\n")
    assert read_gpus(tmp_path) == (Gpu("card2", 0, None, None, None, None), Gpu("card10", 37, 5, 10, None, 20))
    assert read_gpus(tmp_path / "absent") == ()
