"""A room imports only from floors below its own (docs/architecture.md)."""

import ast
from pathlib import Path

import bankml

FLOORS = {
    "errors": 0, "pages": 0, "threads": 0, "receipt": 0, "_native": 0,
    "files": 1, "measure": 1,
    "gguf": 2, "sampling": 2, "http": 2, "signing": 2,
    "gate": 3, "text": 3, "transparency": 3,
    "model": 4, "grammar": 4, "upstream": 4,
    "answers": 5, "engine": 5,
    "library": 6,
    "api": 7, "convert": 7,
    "capi": 8, "replay": 8,
    "batch": 9,
    "cli": 10, "__main__": 11,
}  # fmt: skip
ROOT = Path(bankml.__file__).parent


def imported_rooms(tree: ast.AST):
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "bankml"
                else [node.module or ""]
            )
        for name in names:
            parts = name.split(".")
            if parts[0] == "bankml" and len(parts) > 1 and parts[1] in FLOORS:
                yield parts[1], node.lineno


def upward(sources):
    """Every import of a room on the same or a higher floor; `sources` are files' paths in the package and texts."""
    for path, source in sources.items():
        room = path.split("/")[0].removesuffix(".py")
        if room == "__init__":
            continue
        for other, line in imported_rooms(ast.parse(source)):
            if other != room and FLOORS[other] >= FLOORS[room]:
                yield f"{path}:{line}: {room} imports {other}"


def test_rooms_import_only_from_floors_below():
    sources = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    assert len(sources) > 200 and list(upward(sources)) == []


def test_an_import_upward_is_found():
    source = "from bankml import library\nfrom bankml.errors import Refused\ndef f():\n    import bankml.model.model"
    assert list(upward({"engine/slot.py": source, "text/x.py": "import bankml.grammar"})) == [
        "engine/slot.py:1: engine imports library",
        "text/x.py:1: text imports grammar",
    ]


def test_every_room_has_a_floor():
    rooms = {p.name.removesuffix(".py") for p in ROOT.iterdir() if p.is_dir() or p.suffix == ".py"}
    assert rooms - {"__init__", "__pycache__"} <= set(FLOORS)
