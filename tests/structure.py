"""Measures of the sources: imports between files, lengths of files and functions, class names, words in messages.

Each takes what it measures as arguments, so that a test can show that it finds a violation.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 60


def modules(root: Path) -> dict[str, Path]:
    """Every module below `root`, the folder of the package, by its dotted name."""
    names = {}
    for path in sorted(root.rglob("*.py")):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        names[".".join(parts).removesuffix(".__init__")] = path
    return names


def imported(tree: ast.AST, known: Mapping[str, object]) -> set[str]:
    """The modules of `known` that a file imports, anywhere in it; imports for type checkers do not count."""
    found: set[str] = set()
    for node in _run_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in known else node.module or "" for name in names}
    return {name for name in found if name in known}


def _run_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of `if TYPE_CHECKING:`."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _run_nodes(other)
        else:
            yield from _run_nodes(child)


def cycles(sources: Mapping[str, str]) -> list[list[str]]:
    """The groups of modules (name to source) that import each other, directly or through others."""
    graph = {name: imported(ast.parse(source), sources) - {name} for name, source in sources.items()}
    reachable = {name: _reachable(name, graph) for name in graph}
    groups = {
        tuple(sorted(other for other in reachable[name] if name in reachable[other]))
        for name in graph
        if name in reachable[name]
    }
    return sorted(list(group) for group in groups)


def _reachable(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = set(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting |= graph[name]
    return found


def too_long(sources: Mapping[str, str]) -> list[str]:
    """The names of the files (name to text) that have more than MOST_FILE_LINES lines."""
    return [name for name, text in sources.items() if text.count("\n") > MOST_FILE_LINES]


def python_functions(source: str) -> Iterator[tuple[str, int]]:
    """Name and lines of every function, its decorators not counted."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


_CPP_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
_CPP_BRACE = re.compile(r"[{};]")
_CPP_NOT_A_FUNCTION = re.compile(
    r"\s*(?:(?:public|private|protected)\s*:\s*)*(?:template\s*<[^(]*>\s*)?(?:namespace|struct|class|enum|union|extern)\b"
)


def cpp_functions(source: str) -> Iterator[tuple[str, int]]:
    """First line's text and lines of every function body, by counting braces: a block that is inside no other but
    namespaces, classes and the like, and has a parameter list before it."""
    source = _CPP_NOISE.sub(lambda noise: re.sub(r"[^\n]", " ", noise[0]), source)
    source = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda line: re.sub(r"[^\n]", " ", line[0]), source, flags=re.M)
    depth, start, before = 0, 0, 0  # `depth` counts braces inside a function
    for found in _CPP_BRACE.finditer(source):
        head = source[before : found.start()]
        before = found.end()
        if found[0] == "{":
            if depth == 0 and ")" in head and not _CPP_NOT_A_FUNCTION.match(head):
                depth, start = 1, found.start()
                name = " ".join(head.split())
            elif depth:
                depth += 1
        elif found[0] == "}" and depth:
            depth -= 1
            if depth == 0:
                yield name, source.count("\n", start, found.end()) + 1


def class_names(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Names of public classes that are defined in more than one of `sources`, with the modules."""
    places = defaultdict(list)
    for module, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    return {name: found for name, found in places.items() if len(found) > 1}


OLD_WORDS = re.compile(
    "|".join(
        [
            r"\bplay(?:s|ed)?(?: it)?\b(?=[^:]*$)|\bdoes not play\b|\bnot played\b|\bplayed here\b",
            r"\b(?:is|are|spoken) spoken here\b|\bspoken here\b",
            r"\bstand(?:s|ing)? in line\b|\bstands? (?:twice|here|there|in|at|once)\b",
            r"\bto be had\b|\blets? go of\b|\bgoes along\b|\bwhat goes out\b",
            r"\btold\b|\bheld to\b|\b(?:is|are|was|were|be) asked\b|\basked for\b",
            r"\b(?:the|a) whole (?:answer|file|text|object|model|prompt|response)s?\b|\bwholly\b|\bvouch(?:es)? for\b",
            r"\bnobody\b|\bwhoever\b|\bhonoured\b|\bpassed over\b|\btake turns\b|\bno whole\b",
            r"\b(?:is|are) no (?:text|number|list|object|file|UTF-8|JSON|bool)\b",
        ]
    )
)
"""Phrases of the dialect that this project's prose once was written in. A reader from llama.cpp, vLLM or httpx would
have to translate them."""


def old_words(text: str) -> list[str]:
    """The phrases in `text` that are not to be used."""
    return [found[0] for found in OLD_WORDS.finditer(text)]


def shown_strings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of string constants that users may see: arguments of exceptions, and of calls named help, say, note
    or the like; an f-string's constant parts are joined by `…`."""
    for node in ast.walk(ast.parse(source)):
        values: list[ast.expr] = []
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            values = list(node.exc.args)
        elif isinstance(node, ast.Call) and _name(node.func) in SAYING:
            values = list(node.args)
        if isinstance(node, ast.Call):
            values += [word.value for word in node.keywords if word.arg in ("help", "description", "epilog")]
        for value in values:
            for text in _texts(value):
                yield value.lineno, text


SAYING = (
    "say", "note", "complain", "refuse", "unsupported", "command", "add_argument_group", "_fail",
    "Refused", "RequestError", "UsageError", "FileProblem", "NotFound", "NotSupported", "Busy", "Truncated",
    "EngineFailed", "RequestRejected", "SkippedRecord", "TemplateError", "NotRestored",
)  # fmt: skip
"""Functions whose arguments become a message."""


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _texts(value: ast.expr) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value
