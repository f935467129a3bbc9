"""Where the reference build is, for tests marked `oracle` and for the scripts that record it.

`make oracle` builds it into oracle/bin; BANKML_ORACLE names another folder of its libraries and llama-server.
BANKML_ORACLE_MODELS names a folder of GGUF files to compare on.
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("BANKML_ORACLE", ROOT / "oracle" / "bin"))
MODELS = Path(os.environ.get("BANKML_ORACLE_MODELS", ROOT / "oracle" / "models"))


def find(name: str) -> Path:
    """A file of the reference build; skips the test when it is not there."""
    if not (BIN / name).exists():
        pytest.skip(f"no {name} in {BIN}: `make oracle` builds it")
    return BIN / name


def model(name: str) -> Path:
    """A GGUF file to compare on; skips the test when it is not there."""
    if not (MODELS / name).exists():
        pytest.skip(f"no {name} in {MODELS}")
    return MODELS / name
