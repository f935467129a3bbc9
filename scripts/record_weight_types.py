"""Records what the reference's own libraries compute with every weight type: tests/recordings/model/weight_types.json.

    python -m scripts.record_weight_types

Needs `make oracle`. A case is ROWSxCOLUMNSxN: the first sixteen digits of the sha256 of N rows' products, or of the
dequantized weights where N is 0.
"""

import json

from tests.ggml import Backend
from tests.model.test_weight_types import digest
from tests.model.weight_blocks import FORMATS, random_rows, random_weights
from tests.oracle import ROOT

# Shapes on both sides of every rule: rows of eight and not, an odd number of blocks.
SHAPES = ((64, 768), (60, 512), (35, 256))
SPANS = (0, 1, 2, 4, 7, 8, 13)


def record() -> dict[str, dict[str, str]]:
    backend = Backend()
    recorded: dict[str, dict[str, str]] = {}
    for name, one in FORMATS.items():
        cases = recorded[name] = {}
        for rows, columns in SHAPES:
            weights = random_weights(rows + columns, name, rows, columns)
            for n in SPANS:
                x = random_rows(n, n, columns)
                got = backend.mul_mat(one.id, weights, x) if n else backend.get_rows(one.id, weights, columns)
                cases[f"{rows}x{columns}x{n}"] = digest(got)
    return recorded


def main() -> None:
    path = ROOT / "tests" / "recordings" / "model" / "weight_types.json"
    path.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(cases, separators=(',', ':'))}" for name, cases in record().items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
