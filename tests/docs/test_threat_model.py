"""docs/threat-model.md: the test that stands behind each claim is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()


def test_every_claim_names_a_test_that_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(set(named)) > 15
    for file, test in named:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.M), f"{file}::{test}"


def test_every_row_of_what_a_party_can_do_has_a_test():
    """But for what nothing shows, which the row says."""
    for section in PAGE.split("\n## ")[2:6]:
        rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
        assert rows and all("::" in row or "| nothing" in row for row in rows), section.splitlines()[0]
