"""The nodes of a parsing expression grammar that describes a model's answers. Children are node ids."""

from dataclasses import dataclass

from bankml.grammar.json_schema.nodes import SchemaDocument


@dataclass(frozen=True, slots=True)
class Empty:
    """Matches nothing, always."""


@dataclass(frozen=True, slots=True)
class End:
    """Matches at the end of the text."""


@dataclass(frozen=True, slots=True)
class Literal:
    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first child that does not fail."""

    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` None: without a limit."""

    child: int
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Ahead:
    """The child matches here; consumes nothing."""

    child: int


@dataclass(frozen=True, slots=True)
class NotAhead:
    child: int


@dataclass(frozen=True, slots=True)
class AnyCharacter:
    pass


@dataclass(frozen=True, slots=True)
class Space:
    """White space, as much as there is."""


@dataclass(frozen=True, slots=True)
class Characters:
    """Characters of the class `pattern`, written as in GBNF."""

    pattern: str
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class StringContent:
    """A string's content up to its `delimiter`, escape sequences whole."""

    delimiter: str


@dataclass(frozen=True, slots=True)
class Until:
    """Text up to the first of `delimiters`; all of it without any."""

    delimiters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StrictSchema:
    """A schema, as JSON, of which every keyword is enforced."""

    schema: object


@dataclass(frozen=True, slots=True)
class Schema:
    """Parsed by the child; in a grammar, a value that the schema allows, under the rule `name`."""

    child: int
    name: str
    document: SchemaDocument | StrictSchema


@dataclass(frozen=True, slots=True)
class Rule:
    """`trigger`: a lazy grammar begins with this rule."""

    name: str
    child: int
    trigger: bool


@dataclass(frozen=True, slots=True)
class RuleRef:
    name: str


@dataclass(frozen=True, slots=True)
class Tag:
    """What the child matches has the meaning `tag`, one of the constants of `tags`."""

    tag: str
    child: int


@dataclass(frozen=True, slots=True)
class Atomic:
    """The child's tags count only once it is complete."""

    child: int


@dataclass(frozen=True, slots=True)
class Gbnf:
    """Parsed by the child; in a grammar, the text `grammar`."""

    child: int
    grammar: str


@dataclass(frozen=True, slots=True)
class Including:
    """Parsed by the child; in a grammar, text up to and with the first of `delimiters`."""

    child: int
    delimiters: tuple[str, ...]


Parent = Repeat | Ahead | NotAhead | Schema | Rule | Tag | Atomic | Gbnf | Including
"""Nodes with one child."""

Node = (
    Empty
    | End
    | Literal
    | Sequence
    | Choice
    | Repeat
    | Ahead
    | NotAhead
    | AnyCharacter
    | Space
    | Characters
    | StringContent
    | Until
    | Schema
    | Rule
    | RuleRef
    | Tag
    | Atomic
    | Gbnf
    | Including
)


@dataclass(frozen=True)
class Arena:
    """All nodes by id; `rules` by name; no RuleRef is a child or the root any more."""

    nodes: tuple[Node, ...]
    rules: dict[str, int]
    root: int
