"""What llama-server b11192 makes of templates and answers (scripts/record_answers.py), and what we make of the same."""

import gzip
import json
import os
from pathlib import Path

from bankml.answers.describe import describe
from bankml.answers.parser import FormattedAnswer
from bankml.answers.request import FormatRequest
from bankml.api.reading.generation import chat_request
from bankml.text.answer import Content, Reasoning
from bankml.text.template import ChatTemplate

KEPT = Path(__file__).parents[1] / "recordings" / "text" / "answers.json.gz"
NOON = 1768478400.0  # 2026-01-15 12:00 UTC


def kept():
    """The recordings in this project."""
    return json.loads(gzip.decompress(KEPT.read_bytes()))


def all_recorded():
    """All recordings, of the folder that BANKML_ANALYSIS names: analysis.jsonl.gz and templates."""
    folder = Path(os.environ["BANKML_ANALYSIS"])
    with gzip.open(next(folder.glob("*analysis.jsonl.gz")), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    names = {row["template"] for row in rows}
    sources = {name: (folder / "templates" / f"{name}.jinja").read_bytes().decode() for name in names}
    return {"templates": sources, "rows": rows}


class Templates:
    """Each is read and analysed once."""

    def __init__(self, sources):
        self._sources = sources
        self._made = {}

    def __getitem__(self, name):
        if name not in self._made:
            self._made[name] = ChatTemplate(self._sources[name])
        return self._made[name]


def form_of(row, template):
    request = chat_request(row["body"])
    conversation = request.prompt
    if conversation.enable_thinking is None:
        thinks = row["enable_thinking"] and row["supports_thinking"]
        conversation = conversation.__class__(**{**vars(conversation), "enable_thinking": thinks})
    return describe(FormatRequest(template, conversation, request.constraint.schema, now=NOON))


def made(form):
    """A format as the recordings have it."""
    return {
        "prompt": form.prompt,
        "generation_prompt": form.opening,
        "grammar": form.grammar,
        "grammar_lazy": form.lazy,
        "triggers": [{"type": 1 if one.kind == "word" else 2, "value": one.value} for one in form.triggers],
        "preserved_tokens": list(form.preserved),
        "stops": list(form.stops),
        "thinking_start": form.thinking_start,
        "thinking_ends": list(form.thinking_ends),
    }


def numbered():
    """Ids as the recordings name those that the server makes."""
    numbers = iter(range(1000))
    return lambda: f"random{next(numbers)}"


def whole(form, text):
    """The message of an answer, or what b11192 ends it with."""
    parser = FormattedAnswer(form, numbered(), echo=True)
    message = {"content": "", "reasoning_content": "", "tool_calls": []}
    for delta in parser.push(text, last=True):
        if isinstance(delta, Content):
            message["content"] += delta.text
        elif isinstance(delta, Reasoning):
            message["reasoning_content"] += delta.text
        else:
            message["tool_calls"].append({"name": delta.name, "arguments": delta.arguments, "id": delta.id})
    return {"error": parser.problem} if parser.problem else {"message": message}


def streamed(form, text, step):
    """The deltas of an answer that comes `step` characters at a time, each with the bytes until then."""
    parser, out = FormattedAnswer(form, numbered()), []
    for at in range(0, len(text), step):
        for delta in parser.push(text[at : at + step], last=False):
            out.append([len(text[: at + step].encode()), shown(delta)])
        if parser.problem:
            return {"deltas": out, "partial_error": parser.problem}
    return {"deltas": out}


def shown(delta):
    if isinstance(delta, Content):
        return {"content": delta.text}
    if isinstance(delta, Reasoning):
        return {"reasoning_content": delta.text}
    call = {"name": delta.name, "arguments": delta.arguments, "id": delta.id}
    return {"index": delta.index, "call": call}


def format_differences(row, template):
    """The names of what differs."""
    got, want = made(form_of(row, template)), row["made"]
    if not want["grammar_lazy"]:
        got.pop("triggers")  # b11192 keeps some that nothing waits for
    return [name for name in got if name in want and got[name] != want[name]]


def answer_differences(output, form):
    want = dict(output["want"])
    got = whole(form, output["text"])
    if "deltas" in want:
        got |= streamed(form, output["text"], output.get("step", 1))
    if want.get("partial_error"):  # the last calls are listed in it
        want["partial_error"] = want["partial_error"].partition("\n")[0]
    return [name for name in got.keys() | want.keys() if got.get(name) != want.get(name)]
