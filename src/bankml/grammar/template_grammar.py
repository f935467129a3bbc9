"""The grammar of a JSON answer with a model's chat template, and where in the answer its value is.

llama-server b11192 makes a parser of the template and a grammar of the parser: the generation prompt, reasoning
between the template's marks if it has them, then the value, alone or in a ```json fence. The generation prompt is
already part of the prompt; the grammar accepts it before the first token is sampled.
"""

from dataclasses import dataclass

from bankml.errors import RequestError
from bankml.grammar.json_schema import Converter, RuleSet, SchemaBudget, SchemaConversionError, SchemaError
from bankml.grammar.json_schema.reader import read_schema
from bankml.grammar.json_schema.rules import literal
from bankml.grammar.json_schema.strict import strict_rule
from bankml.grammar.until import until
from bankml.text.reasoning import ReasoningMarks

FENCE, FENCE_END = "```json", "```"

WHITE_SPACE = " \t\n\v\f\r"

FAILED = "Unable to generate parser for this template. Automatic parser generation failed: "
"""b11192's prefix of every reason."""

JSON_RULES = {
    "json-array": '"[" space ("]" | json-value (space "," space json-value)* space "]")',
    "json-bool": '"true" | "false"',
    "json-null": '"null"',
    "json-number": '"-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? (("e" | "E") [+-]? [0-9]+)?',
    "json-object": '"{" space ("}" | json-string space ":" space json-value '
    '(space "," space json-string space ":" space json-value)* space "}")',
    "json-string": r'"\"" ( [^"\\] | "\\" ( ["\\/ bfnrt] | "u" [0-9a-fA-F]{4} ) )* "\""',
    "json-value": "json-object | json-array | json-string | json-number | json-bool | json-null",
}
"""Unreferenced rules: they come with the parser that the schema is inserted into."""

ANSWER, SCHEMA = "response-format", "response-format-schema"


@dataclass(frozen=True)
class OwnParser:
    """Templates with all of `has` and none of `lacks` in their source have a parser of their own in b11192."""

    has: tuple[str, ...]
    lacks: tuple[str, ...] = ()

    def is_of(self, source: str) -> bool:
        return all(text in source for text in self.has) and not any(text in source for text in self.lacks)


OWN_PARSERS = (
    OwnParser(("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"), ("[CALL_ID]",)),
    OwnParser(("<|channel|>",)),
    OwnParser(("<atem:function_calls>", "<|eom|>")),
    OwnParser((">>>all", ">>>${recipient}")),
    OwnParser(("<|tool_calls_section_begin|>", "<|tool_call_begin|>")),
    OwnParser(("<|open|>", "<|close|>", "<|end_of_msg|>")),
    OwnParser(("<role>ASSISTANT</role>", "<arg_key>")),
    OwnParser(("<|START_TEXT|>", "<|START_ACTION|>")),
    OwnParser(("<|tool_list_start|>", "<|tool_list_end|>")),
    OwnParser(("List of tools: [",), ("<|tool_list_start|>",)),
    OwnParser(("<|role_sep|>", "<|message_sep|>"), ("<|function_call|>",)),
    OwnParser(("]<]minimax[>[", "<tool_call>", "<invoke name=")),
    OwnParser(("dsml_token", "DSML", "function_calls")),
    OwnParser(("dsml_token", "DSML", "tool_calls")),
    OwnParser(("'<|tool_call>call:'",)),
    OwnParser(("Tool usage guidelines:", '<function name="', '<param name="')),
    OwnParser(("<tool_call>", "<function=", "<parameter="), ("'<tool_call><function=' ~ tool_call.name ~ '>'",)),
)


@dataclass(frozen=True)
class AnswerShape:
    """What surrounds a value: `opening` (None if the template has no generation prompt), then white space, then
    reasoning up to `thought_end` unless that is "" (it begins with `thought_start`, which may be ""), then the value
    or the fence."""

    opening: str | None
    thought_start: str = ""
    thought_end: str = ""


def answer_shape(source: str, marks: ReasoningMarks, generation_prompt: str) -> AnswerShape:
    """`generation_prompt`: that of the template of this `source`; `marks`: what it writes around reasoning. Raises
    RequestError for a template whose answers have another shape in b11192."""
    if any(one.is_of(source) for one in OWN_PARSERS):
        raise RequestError("JSON-constrained answers are unsupported with this model's chat template")
    start = marks.start.strip(WHITE_SPACE)
    opening = (generation_prompt.partition(start)[0] if start else generation_prompt) if generation_prompt else None
    has_thoughts = bool(marks.end.strip(WHITE_SPACE))
    return AnswerShape(opening, marks.start, marks.end) if has_thoughts else AnswerShape(opening)


def template_grammar(shape: AnswerShape, schema: object, strict: bool = False) -> str:
    """The grammar, in GBNF, of an answer of this shape with a value that `schema` allows; `strict`: every keyword of
    the schema is enforced. Raises RequestError."""
    if strict:
        return _strict_grammar(shape, schema)
    try:
        budget = SchemaBudget()
        rules = RuleSet(budget)
        converter = Converter(read_schema(schema, budget), rules)
        for name, rule in JSON_RULES.items():
            rules.add(name, rule)
        rules.add(ANSWER, converter.add_root(SCHEMA))
        rules.add("root", _root(shape, rules))
        return converter.text()
    except (SchemaError, SchemaConversionError) as error:
        raise RequestError(f"{FAILED}{error}") from None


def _strict_grammar(shape: AnswerShape, schema: object) -> str:
    try:
        rules = RuleSet(SchemaBudget())
        rules.add(ANSWER, strict_rule(schema, rules, SCHEMA))
        rules.add("root", _root(shape, rules))
        return rules.text()
    except SchemaError as error:
        raise RequestError(str(error)) from None


def _root(shape: AnswerShape, rules: RuleSet) -> str:
    parts = [] if shape.opening is None else [literal(shape.opening)]
    parts.append("space")
    if shape.thought_end:
        parts.append(_thought(shape, rules))
    fenced = f"{literal(FENCE)} space {ANSWER} space {literal(FENCE_END)}"
    return " ".join([*parts, "space", f"({fenced} | space {ANSWER} space)"])


def _thought(shape: AnswerShape, rules: RuleSet) -> str:
    end = shape.thought_end.strip(WHITE_SPACE)
    spaces = len(shape.thought_end) - len(end)
    # b11192 numbers the pieces of its parser; the mark's white space comes before the reasoning.
    thought = until(end, f"until-{4 + 3 * spaces}", rules)
    start = [_mark(shape.thought_start)] if shape.thought_start else []
    return f"({' '.join([*start, thought, _mark(shape.thought_end)])})?"


def _mark(mark: str) -> str:
    """A mark whose surrounding white space is optional."""
    inner = mark.strip(WHITE_SPACE)
    before, _, behind = mark.partition(inner)
    left_out = [[f"{literal(space)}?" for space in spaces] for spaces in (before, behind)]
    return " ".join([*left_out[0], literal(inner), *left_out[1]])
