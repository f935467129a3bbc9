"""Records what the reference makes of schemas and of chat templates, for the tests that run without it.

    python -m scripts.record_grammar

Needs `make oracle` and g++. Writes tests/recordings/grammar/schemas.json (each schema's grammar, or why it is
refused) and answers.json (each template's grammars, and the contents of answers behind it, character by character).
"""

import json
from pathlib import Path

from tests.grammar.answer_cases import ANSWERS, CONTINUED, MESSAGES, SCHEMAS, TEMPLATES
from tests.grammar.probe import Probe, probe
from tests.grammar.schema_cases import SCHEMAS as ALL_SCHEMAS

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "recordings" / "grammar"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    _write("schemas.json", {text: probe().ask("schema", text=text) for text in ALL_SCHEMAS})
    _write("answers.json", {name: _template(probe(), source) for name, source in TEMPLATES.items()})


def _template(reference: Probe, source: str) -> dict[str, object]:
    def made(messages: list[dict[str, str]], schema: str) -> dict[str, str]:
        goes_on = messages[-1]["role"] == "assistant"
        asked = {"template": source, "bos": "", "eos": "", "messages": messages, "schema": schema, "continue": goes_on}
        return reference.ask("chat", **asked)

    def contents(shape: dict[str, str], answer: str) -> list[str | None]:
        """What is told of each beginning of the answer; None where the reference fails."""
        fixed = {"parser": shape["parser"], "generation_prompt": shape["generation_prompt"]}
        told = [reference.ask("content", text=answer[:size], **fixed) for size in range(len(answer) + 1)]
        return [None if "error" in one else one["content"] for one in told]

    grammars = {schema: made(MESSAGES, schema) for schema in SCHEMAS}
    continued = made(CONTINUED, SCHEMAS[0])
    answers = {answer: contents(grammars[SCHEMAS[0]], answer) for answer in ANSWERS}
    rest = {answer: contents(continued, answer) for answer in ('": 1}', '": "', "!")}
    for one in (*grammars.values(), continued):
        one.pop("parser", None)
        one.pop("format", None)
    return {"grammars": grammars, "continued": continued, "answers": answers, "rest of the continued": rest}


def _write(name: str, value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    (FOLDER / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
