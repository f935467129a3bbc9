"""Memory over many switches: where it started, and never two models at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_model import tiny_model

N_LAYER, N_FF = 8, 15616
MODEL_MB = N_LAYER * N_FF * 3 * 64 * 2 / 1e6
ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the kernel does not tell a process's peak memory"
)
def test_twenty_switches_under_load_leave_memory_where_it_was(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        tiny_model(tmp_path / name, n_layer=N_LAYER, seed=len(name), n_ff=N_FF)
    done = subprocess.run(
        [sys.executable, "-m", "tests.library.switcher", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["switches"] >= 20 and told["wrong"] == 0
    assert abs(told["after_mb"] - told["before_mb"]) <= 20, told
    assert told["peak_mb"] <= max(told["before_mb"], told["after_mb"]) + MODEL_MB * 0.6, told
