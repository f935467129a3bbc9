"""JSON schemas to GBNF, byte for byte the text that llama-server b11192 makes of them.

    request's JSON ─ reader ─ nodes ─ converter (objects, patterns, integers) ─ rules ─ text
                     refuses  frozen

A schema that cannot be converted is refused in b11192's words; see docs/differences.md for what only we refuse.
"""

from bankml.errors import RequestError
from bankml.grammar.json_schema.budget import SchemaBudget
from bankml.grammar.json_schema.converter import Converter
from bankml.grammar.json_schema.nodes import SchemaDocument
from bankml.grammar.json_schema.problems import SchemaConversionError, SchemaError
from bankml.grammar.json_schema.reader import read_schema
from bankml.grammar.json_schema.rules import RuleSet

__all__ = [
    "Converter",
    "RuleSet",
    "SchemaBudget",
    "SchemaConversionError",
    "SchemaDocument",
    "SchemaError",
    "json_schema_to_grammar",
]


def json_schema_to_grammar(schema: object) -> str:
    """The grammar, in GBNF, of the JSON values that `schema` allows.

    `schema` is a value as a JSON reader gives it: keys in their order, integers and floats distinct. Raises
    RequestError for a schema that is invalid, unsupported or too large.
    """
    try:
        budget = SchemaBudget()
        converter = Converter(read_schema(schema, budget), RuleSet(budget))
        converter.add_root()
        return converter.text()
    except SchemaError as error:
        raise RequestError(f"JSON schema conversion failed:\n{error}") from None
    except SchemaConversionError as error:
        raise RequestError(str(error)) from None
