"""`json_schema`, `grammar` and `response_format` of a request, as llama-server reads them."""

from collections.abc import Mapping
from typing import Any

from bankml.api.reading.fields import shown
from bankml.errors import RequestError
from bankml.grammar.constraint import ANY_OBJECT, ConstraintSpec, schema_grammar

Body = Mapping[str, Any]


def read_chat_constraint(body: Body) -> ConstraintSpec:
    """The constraint of a chat request's body. Raises RequestError, in llama-server's words where it has some."""
    schema = _schema(body)
    spec = _spec(schema, body)
    if schema is not None and schema is body.get("json_schema") and not isinstance(schema, dict):
        schema_grammar(schema)  # which refuses it, in the words that llama-server has for this field
    return spec


def read_completion_constraint(body: Body) -> ConstraintSpec:
    """The constraint of a completion request's body, which has no `response_format`. Raises RequestError."""
    return _spec(body.get("json_schema"), body)


def check_response_format(body: Body) -> None:
    """Raises RequestError for a type of `response_format` that there is not."""
    given = body.get("response_format")
    if given is not None and not isinstance(given, dict):
        raise RequestError(f"Field 'response_format': expected an object, but got {shown(given)}")
    wanted = (given or {}).get("type")
    if wanted is None or wanted in ("", "text", "json_object", "json_schema"):
        return
    got = shown(wanted)[1:-1] if isinstance(wanted, str) else shown(wanted)
    raise RequestError(f'response_format type must be one of "text" or "json_object", but got: {got}')


def _spec(schema: object, body: Body) -> ConstraintSpec:
    grammar = body.get("grammar")
    if not isinstance(grammar, str | None):
        raise RequestError(f"Field 'grammar': expected a string, but got {shown(grammar)}")
    if schema is not None and grammar:
        raise RequestError("Cannot use both json_schema and grammar")
    return ConstraintSpec(schema, grammar or "")


def _schema(body: Body) -> object:
    """The schema that the request names, None without one. An empty one means any object, as in llama-server."""
    schema = body.get("json_schema")
    wanted = body.get("response_format") or {}
    kind = wanted.get("type")
    if kind == "json_object" and ("schema" in wanted or schema in (None, {}, [])):
        schema = _inner(wanted, "schema")
    elif kind == "json_schema":
        wrapper = _inner(wanted, "json_schema")
        if not isinstance(wrapper, dict):
            raise RequestError("Field 'response_format.json_schema': expected an object with the schema in 'schema'")
        schema = _inner(wrapper, "schema")
    return ANY_OBJECT if schema == {} else schema


def _inner(holder: Body, key: str) -> object:
    value = holder.get(key)
    return {} if value is None else value
