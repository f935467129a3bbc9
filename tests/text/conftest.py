import json
from pathlib import Path
from typing import Any

import pytest

RECORDINGS = Path(__file__).parents[1] / "recordings" / "text"


@pytest.fixture(scope="session")
def recorded_tokens() -> Any:
    return json.loads((RECORDINGS / "tokenizer.json").read_text())


@pytest.fixture(scope="session")
def recorded_templates() -> Any:
    return json.loads((RECORDINGS / "templates.json").read_text())
