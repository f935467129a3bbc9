"""`json_schema`, `grammar` and `response_format` of a request, as llama-server reads them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bankml.api.reading.fields import refuse, shown
from bankml.errors import RequestError
from bankml.grammar.constraint import ANY_OBJECT, ConstraintSpec, schema_grammar
from bankml.grammar.json_schema.rules import literal

Body = Mapping[str, Any]

WRAPPER_FIELDS = {"name", "description", "strict", "schema"}
"""The fields of OpenAI's `response_format.json_schema`."""

GUIDED = ("guided_json", "guided_choice", "guided_regex", "guided_grammar")
"""vLLM's constraint fields; `structured_outputs` holds the same without the prefix."""


def read_chat_constraint(body: Body) -> ConstraintSpec:
    """The constraint of a chat request's body. Raises RequestError, in llama-server's words where it has some."""
    schema, body = _schema(body), _with_guided(body)
    schema = body.get("json_schema") if schema is None else schema
    spec = replace(_spec(schema, body), strict=_is_strict(body))
    if schema is not None and schema is body.get("json_schema") and not isinstance(schema, dict):
        schema_grammar(schema)  # which refuses it, in the words that llama-server has for this field
    return spec


def read_completion_constraint(body: Body) -> ConstraintSpec:
    """The constraint of a completion request's body, which has no `response_format`. Raises RequestError."""
    body = _with_guided(body)
    return _spec(body.get("json_schema"), body)


def check_response_format(body: Body) -> None:
    """Raises RequestError for a schema beside a grammar, and for a type of `response_format` that there is not."""
    if body.get("json_schema") is not None and isinstance(body.get("grammar"), str) and body["grammar"]:
        raise RequestError("Cannot use both json_schema and grammar")
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
        schema = _wrapped(wanted)
    return ANY_OBJECT if schema == {} else schema


def _with_guided(body: Body) -> Body:
    """`body` with vLLM's constraint, if it has one, as a schema or a grammar. Raises RequestError for two of them."""
    given = {name: body[name] for name in GUIDED if body.get(name) is not None}
    structured = body.get("structured_outputs")
    if structured is not None:
        if not isinstance(structured, dict):
            raise refuse("structured_outputs", f"expected an object, but got {shown(structured)}")
        for name, value in structured.items():
            if f"guided_{name}" in GUIDED and value is not None:
                given[f"guided_{name}"] = value
            elif value not in (None, False):
                known = ", ".join(one.removeprefix("guided_") for one in GUIDED)
                raise refuse(f"structured_outputs.{name[:80]}", f"unsupported constraint (supported: {known})")
    if not given:
        return body
    other = next((name for name in ("grammar", "json_schema") if body.get(name)), None)
    if len(given) > 1 or other:
        names = " and ".join([*given, *([other] if other else [])])
        raise RequestError(f"Cannot use {names} together: an answer has one constraint")
    ((name, value),) = given.items()
    return {**body, **_guided(name, value)}


def _guided(name: str, value: Any) -> dict[str, Any]:
    if name == "guided_json":
        return {"json_schema": _guided_schema(value)}
    if name == "guided_grammar":
        if not isinstance(value, str):
            raise refuse(name, f"expected a grammar in GBNF, but got {shown(value)}")
        return {"grammar": value}
    if name == "guided_choice":
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
            raise refuse(name, f"expected an array of strings that are not empty, but got {shown(value)}")
        return {"grammar": "root ::= " + " | ".join(literal(one) for one in value)}
    raise refuse(name, "regular expressions are not supported as a constraint: send a grammar in GBNF ('grammar')")


def _guided_schema(value: Any) -> dict[str, Any]:
    try:
        schema = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        raise refuse("guided_json", "expected a JSON schema, but got text that is not JSON") from None
    if not isinstance(schema, dict):
        raise refuse("guided_json", f"expected a JSON schema (an object), but got {shown(schema)}")
    return schema


def _is_strict(body: Body) -> bool:
    """OpenAI's `response_format.json_schema.strict`."""
    wrapper = (body.get("response_format") or {}).get("json_schema")
    strict = wrapper.get("strict") if isinstance(wrapper, dict) else None
    if strict is not None and not isinstance(strict, bool):
        raise refuse("response_format.json_schema.strict", f"expected true or false, but got {shown(strict)}")
    return bool(strict)


def _wrapped(wanted: Body) -> object:
    """The schema of a response_format of type json_schema: OpenAI's `json_schema.schema`, or as clients also send it,
    `schema` beside the type, or the schema itself as `json_schema`."""
    wrapper = _inner(wanted, "json_schema")
    if not isinstance(wrapper, dict):
        raise RequestError("Field 'response_format.json_schema': expected an object with the schema in 'schema'")
    if not wrapper and wanted.get("schema") is not None:
        return wanted["schema"]
    if "schema" not in wrapper and not wrapper.keys() <= WRAPPER_FIELDS:
        return wrapper
    return _inner(wrapper, "schema")


def _inner(holder: Body, key: str) -> object:
    value = holder.get(key)
    return {} if value is None else value
