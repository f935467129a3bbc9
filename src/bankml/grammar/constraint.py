"""The constraint of a request's answer: a grammar, or the values of a JSON schema."""

from dataclasses import dataclass

from bankml.errors import RequestError
from bankml.grammar.json_schema import json_schema_to_grammar

ANY_OBJECT = {"type": "object"}
"""The meaning of an empty schema."""


@dataclass(frozen=True)
class ConstraintSpec:
    """What a request specifies: a JSON `schema` (None: none) or a `grammar` in GBNF ("" none), never both.
    `strict`: every keyword of the schema is enforced or refused, as with OpenAI's field of that name."""

    schema: object = None
    grammar: str = ""
    strict: bool = False

    def __bool__(self) -> bool:
        return self.schema is not None or bool(self.grammar)


NO_CONSTRAINT = ConstraintSpec()


@dataclass(frozen=True)
class Constraint:
    """The grammar of a raw prompt's continuation, in GBNF; `of_schema`: it was made of a schema rather than sent."""

    grammar: str
    of_schema: bool = False


def completion_constraint(spec: ConstraintSpec) -> Constraint:
    """The constraint of a raw prompt's continuation: it begins with the first token, and all of it is content. Raises
    RequestError, in llama-server's words where it has some."""
    if spec.schema is None:
        return Constraint(spec.grammar)
    return Constraint(schema_grammar(ANY_OBJECT if spec.schema == {} else spec.schema), of_schema=True)


def schema_grammar(schema: object) -> str:
    """The grammar of the field `json_schema`, without what a chat template writes around a value."""
    try:
        return json_schema_to_grammar(schema)
    except RequestError as error:
        raise RequestError(f"Field 'json_schema': \"json_schema\": {error}") from None
