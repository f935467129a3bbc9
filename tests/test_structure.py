"""What keeps the sources small and clear. Each rule is shown to fail on a violation."""

import re
from pathlib import Path

import pytest

from tests.structure import (
    MOST_FUNCTION_LINES,
    class_names,
    cpp_functions,
    cycles,
    modules,
    old_words,
    python_functions,
    shown_strings,
    too_long,
)

ROOT = Path(__file__).parents[1]
SOURCES = {name: path.read_text() for name, path in modules(ROOT / "src" / "bankml").items()}
NATIVE = sorted(path for kind in ("*.cpp", "*.h") for path in (ROOT / "native").rglob(kind))
GENERATED = {"unicode_tables.h"}
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)

FIXED = {
    "guard plays it, sha256 …",  # the line of `verify`: scripts read it
}
"""Messages, or parts of them, that stay as they are."""


def test_no_cycle_between_files():
    assert cycles(SOURCES) == []


def test_a_cycle_is_found():
    source = {
        "b.x": "from b.y import f",
        "b.y": "def f():\n    from b import z",
        "b.z": "from typing import TYPE_CHECKING\nimport b.x\nif TYPE_CHECKING:\n    import b.w",
        "b.w": "import b.x",
    }
    assert cycles(source) == [["b.x", "b.y", "b.z"]]
    assert cycles({**source, "b.z": "if TYPE_CHECKING:\n    import b.x"}) == []


def test_no_file_is_too_long():
    paths = [*modules(ROOT / "src" / "bankml").values(), *(path for path in NATIVE if path.name not in GENERATED)]
    assert len(paths) > 250 and too_long({path.name: path.read_text() for path in paths}) == []


def test_a_long_file_is_found():
    assert too_long({"a.py": "x = 1\n" * 400, "b.py": "x = 1\n" * 401}) == ["b.py"]


def test_no_function_is_too_long():
    python = [(module, *found) for module, source in SOURCES.items() for found in python_functions(source)]
    cpp = [(path.name, *found) for path in NATIVE for found in cpp_functions(path.read_text())]
    assert len(python) > 1500 and len(cpp) > 300
    assert [found for found in (*python, *cpp) if found[2] > MOST_FUNCTION_LINES] == []


def test_a_long_function_is_found():
    body = "    x = 1\n" * 60
    assert list(python_functions(f"class A:\n  @wraps(\n     g)\n  def f():\n{body}")) == [("f", 61)]
    source = f"""
    #define LOOP(n) {{ \\
        while (n) {{ \\
        }}
    namespace bankml {{
    struct S {{
        int g() const {{ return '}}'; }}
    }};
    template <class T> void f(int x) {{  // {{
        auto s = "{{";
        {"x++;" + chr(10)}
        if (x) {{
            {chr(10) * 60}
        }}
    }}
    }}  // namespace
    """
    assert [(name.split("(")[0], lines > 60) for name, lines in cpp_functions(source)] == [
        ("int g", False),
        ("template <class T> void f", True),
    ]


def test_class_names_are_unique():
    assert class_names(SOURCES) == {}


def test_a_second_class_of_a_name_is_found():
    assert class_names({"a": "class A: ...", "b": "class A: ...\nclass _B: ...", "c": "class _B: ..."}) == {
        "A": ["a", "b"]
    }


def test_messages_use_the_fields_terms():
    shown = [(module, *found) for module, source in SOURCES.items() for found in shown_strings(source)]
    assert len(shown) > 500
    allowed = [part for text in FIXED for part in text.split("…") if part]
    found = [one for one in shown if old_words(one[2]) and not any(part in one[2] for part in allowed)]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_use_the_fields_terms(page):
    assert old_words(CODE.sub("", page.read_text())) == []


def test_an_old_word_is_found_in_a_page_but_not_in_its_code():
    assert old_words(CODE.sub("", "Requests stand in line, `x is told`.\n```\nto be had\n```")) == ["stand in line"]


@pytest.mark.parametrize(
    "source",
    [
        "raise Refused('it does not play it')",
        "raise UsageError(f'{x} is not to be had')",
        "parser.add_argument('--x', help='the file that is asked for')",
        "say('requests stand in line')",
        "raise ValueError('a model that is not played here')",
        "note(f'{a}: passed over')",
    ],
)
def test_an_old_word_is_found(source):
    assert [word for _, text in shown_strings(source) for word in old_words(text)]
    assert [
        word for _, text in shown_strings("raise Refused('unsupported weight type Q8_0')") for word in old_words(text)
    ] == []
