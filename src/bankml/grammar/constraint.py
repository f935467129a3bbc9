"""What a request holds its answer to: `grammar`, `json_schema` and, in a chat, `response_format`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.errors import RequestError
from bankml.grammar.content import ContentStream
from bankml.grammar.json_schema import json_schema_to_grammar
from bankml.grammar.template_grammar import AnswerShape, answer_shape, template_grammar
from bankml.text.messages import conversation
from bankml.text.template import ChatTemplate

THINKING_OFF = "thinking is switched off on this server"

ANY_OBJECT = {"type": "object"}
"""What a schema that says nothing means."""


@dataclass(frozen=True)
class Constraint:
    """`grammar` is GBNF, and `of_schema` when it was made of a schema rather than sent. It takes `opening`, the end of
    the prompt, before the first token is drawn. `shape` tells where in the answer its content stands; None: all of it
    is content."""

    grammar: str
    opening: str = ""
    shape: AnswerShape | None = None
    of_schema: bool = False

    def content(self) -> ContentStream | None:
        """Where one answer's text is pushed to get its content; None: the text is the content."""
        return None if self.shape is None else ContentStream(self.shape, self.opening)


def constraint(body: Mapping[str, Any], template: ChatTemplate) -> Constraint | None:
    """What the body of a chat request asks for; None: any answer will do. Raises RequestError, in llama-server's
    words where it has some."""
    schema, grammar = schema_or_grammar(body)
    _refuse_thoughts(body, template, held_to_schema=schema is not None)
    if schema is None:
        return Constraint(grammar) if grammar else None
    if schema is body.get("json_schema") and not isinstance(schema, dict):
        _schema_grammar(schema)  # which refuses it, in the words that llama-server has for this field
    asked = conversation(body)
    opening = template.generation_prompt(asked)
    shape = answer_shape(template.source, template.reasoning, opening)
    return Constraint(template_grammar(shape, schema), template.opening(asked), shape, of_schema=True)


def _refuse_thoughts(body: Mapping[str, Any], template: ChatTemplate, held_to_schema: bool) -> None:
    """Refuses what would have llama-server tell a thought in another way than as the beginning of the content: told
    apart where thinking is on, told with the prompt's end where no thoughts are looked for."""
    given, plain = body.get("chat_template_kwargs"), body.get("reasoning_format") == "none"
    # To a template that asks whether it is false, null and 0 are as good as true.
    on = bool(given) and conversation(body).template_arguments.get("enable_thinking", False) is not False
    if not (plain or on) or not template.reasoning.end.strip():
        return
    if plain:
        raise RequestError(f"Field 'reasoning_format': {THINKING_OFF} (got \"none\")")
    if not held_to_schema:
        raise RequestError(f"Field 'chat_template_kwargs': {THINKING_OFF}, but enable_thinking is not false")


def completion_constraint(body: Mapping[str, Any]) -> Constraint | None:
    """What the body of a completion request asks for: its answer is the schema's value or the grammar's text from the
    first token on, and all of it is content. Raises RequestError, in llama-server's words where it has some."""
    schema, grammar = _one_of(body.get("json_schema"), body)
    if schema is None:
        return Constraint(grammar) if grammar else None
    return Constraint(_schema_grammar(ANY_OBJECT if schema == {} else schema), of_schema=True)


def _schema_grammar(schema: object) -> str:
    """The grammar of the field `json_schema` alone, without what a chat template puts around a value."""
    try:
        return json_schema_to_grammar(schema)
    except RequestError as error:
        raise RequestError(f"Field 'json_schema': \"json_schema\": {error}") from None


def schema_or_grammar(body: Mapping[str, Any]) -> tuple[object, str]:
    """The schema (None without one) or the grammar ("" without one) that the body of a chat request has. Raises
    RequestError for both."""
    return _one_of(wanted_schema(body), body)


def _one_of(schema: object, body: Mapping[str, Any]) -> tuple[object, str]:
    """`schema` and the body's grammar, of which no more than one is there; an empty grammar is none."""
    grammar = body.get("grammar")
    if not isinstance(grammar, str | None):
        raise RequestError("Field 'grammar': expected a string")
    if schema is not None and grammar:
        raise RequestError("Cannot use both json_schema and grammar")
    return schema, grammar or ""


def wanted_schema(body: Mapping[str, Any]) -> object:
    """The schema that the request names, None without one. One that is empty means any object, as in llama-server."""
    schema = body.get("json_schema")
    wanted = body.get("response_format")
    if not isinstance(wanted, dict | None):
        raise RequestError("Field 'response_format': expected an object")
    kind = (wanted or {}).get("type")
    if wanted and kind == "json_object" and ("schema" in wanted or schema in (None, {}, [])):
        schema = _inner(wanted, "schema")
    elif wanted and kind == "json_schema":
        wrapper = _inner(wanted, "json_schema")
        if not isinstance(wrapper, dict):
            raise RequestError("Field 'response_format.json_schema': expected an object with the schema in 'schema'")
        schema = _inner(wrapper, "schema")
    return ANY_OBJECT if schema == {} else schema


def _inner(holder: Mapping[str, Any], key: str) -> object:
    value = holder.get(key)
    return {} if value is None else value
