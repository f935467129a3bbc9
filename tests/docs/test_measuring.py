"""The page on what is measured names every field and every family that there is, and no other."""

import json
import re
import time
from dataclasses import fields
from pathlib import Path

from bankml.measure.completions import Completions, Record, Totals
from bankml.measure.counters import Counters
from bankml.measure.gpus import Gpu
from bankml.measure.prometheus import ServerState, exposition
from bankml.measure.usage import Watched, measure

PAGE = (Path(__file__).parents[2] / "docs" / "measuring.md").read_text()


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(title):
    """The code spans of the table's first column."""
    rows = re.findall(r"^\| (`.*?) \|", section(title), re.M)
    return {span for row in rows for span in re.findall(r"`(.+?)`", row)}


def test_fields_of_a_completion():
    completions = Completions()
    completions.record(Record(time.time(), "m"))
    told = json.loads(completions.written())
    assert first_column("The last completions") == set(told["completions"][0])
    assert f'"ring": {told["ring"]},' in PAGE
    assert {field.name for field in fields(Totals)} - {"completions", "cache_hits"} <= set(told["completions"][0])


def test_fields_of_usage():
    told = measure([Watched("gateway", 1)], 0.01).as_json()
    assert first_column("The machine") == set(told)
    inner = {*told["memory"], *told["swap"], *told["processes"][0], *(field.name for field in fields(Gpu))}
    assert [name for name in inner if f"`{name}`" not in section("The machine")] == []


def test_families():
    counters = Counters()
    counters.answered(Record(time.time(), "m", 1, 0, 1, energy_j=1.0))
    text = exposition(counters.counts(), ServerState("engine", 0, 0, 0, 0, 0, {})).decode()
    families = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert first_column("Prometheus") == families
