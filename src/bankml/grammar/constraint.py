"""What a chat request holds its answer to: `grammar`, `json_schema`, `response_format`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.errors import RequestError
from bankml.grammar.content import ContentStream
from bankml.grammar.template_grammar import AnswerShape, answer_shape, template_grammar
from bankml.text.messages import conversation
from bankml.text.template import ChatTemplate

ANY_OBJECT = {"type": "object"}
"""What a schema that says nothing means."""


@dataclass(frozen=True)
class Constraint:
    """`grammar` is GBNF. It takes `opening`, the end of the prompt, before the first token is drawn. `shape` tells
    where in the answer its content stands; None: all of it is content."""

    grammar: str
    opening: str = ""
    shape: AnswerShape | None = None

    def content(self) -> ContentStream | None:
        """Where one answer's text is pushed to get its content; None: the text is the content."""
        return None if self.shape is None else ContentStream(self.shape, self.opening)


def constraint(body: Mapping[str, Any], template: ChatTemplate) -> Constraint | None:
    """What the body of a chat request asks for; None: any answer will do. Raises RequestError, in llama-server's
    words where it has some."""
    schema, grammar = wanted_schema(body), body.get("grammar")
    if not isinstance(grammar, str | None):
        raise RequestError("Field 'grammar': expected a string")
    if schema is None:
        return Constraint(grammar) if grammar else None
    if grammar:
        raise RequestError("Cannot use both json_schema and grammar")
    asked = conversation(body)
    opening = template.generation_prompt(asked)
    shape = answer_shape(template.source, template.reasoning, opening)
    return Constraint(template_grammar(shape, schema), template.opening(asked), shape)


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
