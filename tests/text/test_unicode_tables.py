"""The generated tables are the ones scripts/make_unicode_tables.py makes of Unicode 15.1.0."""

import hashlib
from pathlib import Path

TABLES = Path(__file__).parents[2] / "native" / "tokenizer" / "unicode_tables.h"


def test_the_tables_are_those_of_unicode_15_1():
    digest = hashlib.sha256(TABLES.read_bytes()).hexdigest()
    assert digest == "1b2848d742b6aa6cde64979eb9d82524b0796fa2880382b20305c17b9f20b89a"
