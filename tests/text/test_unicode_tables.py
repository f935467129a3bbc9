"""The generated tables are the ones scripts/make_unicode_tables.py makes of Unicode 15.1.0."""

import hashlib
from pathlib import Path

TABLES = Path(__file__).parents[2] / "native" / "tokenizer" / "unicode_tables.h"


def test_the_tables_are_those_of_unicode_15_1():
    digest = hashlib.sha256(TABLES.read_bytes()).hexdigest()
    assert digest == "5cd64de8550dd88d40d699548c906eaeba75579c6ac655a02c8e7333b6249a4b"
