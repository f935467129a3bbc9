"""The parser of an answer: the same whatever pieces the text comes in, and linear in its length."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.answers.describe import describe
from bankml.answers.parser import FormattedAnswer
from bankml.answers.peg import machine
from bankml.answers.request import FormatRequest
from bankml.text.answer import MessageText, WholeCalls
from bankml.text.messages import Conversation
from tests.answers.recorded import Templates, form_of, kept

RECORDED = kept()
TEMPLATES = Templates(RECORDED["templates"])


def is_monotone(want):
    """Nothing that was streamed is taken back: some formats find out late that a call is none."""
    sent = {"content": "", "reasoning_content": "", "calls": 0}
    for _, delta in want.get("deltas", ()):
        for name in ("content", "reasoning_content"):
            sent[name] += delta.get(name, "")
        sent["calls"] = max(sent["calls"], delta.get("index", -1) + 1)
    message = want.get("message", {})
    told = {name: message.get(name) for name in ("content", "reasoning_content")}
    return {**told, "calls": len(message.get("tool_calls", ()))} == sent


ANSWERS = [
    (row, output["text"])
    for row in RECORDED["rows"]
    for output in row["outputs"]
    if output["name"] in ("hard", "calls", "thought-words") and is_monotone(output["want"])
]
QWEN = "Qwen-Qwen3-0.6B"
TOOL = {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}, "required": ["text"]}
TOOLS = [{"type": "function", "function": {"name": "say", "description": "", "parameters": TOOL}}]


def form(name, **fields):
    conversation = Conversation([{"role": "user", "content": "hi"}], tools=TOOLS, **fields)
    return describe(FormatRequest(TEMPLATES[name], conversation))


def read(parser, pieces):
    message = MessageText()
    for piece in pieces:
        message.add(parser.push(piece, last=False))
    message.add(parser.push("", last=True))
    return message.content, message.reasoning, message.calls


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_does_not_matter_in_what_pieces_an_answer_comes(data):
    row, text = data.draw(st.sampled_from(ANSWERS))
    made = form_of(row, TEMPLATES[row["template"]])
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(FormattedAnswer(made, lambda: "id"), pieces) == read(FormattedAnswer(made, lambda: "id"), [text])


@pytest.mark.parametrize(
    ("name", "start", "piece"),
    [
        (QWEN, "<think>", "I think. "),
        (QWEN, "", "Words < and { "),
        (QWEN, '<tool_call>\n{"name": "say", "arguments": {"text": "', "more "),
        ("Qwen3-Coder", "<tool_call>\n<function=say>\n<parameter=text>\n", "a < b\n"),
        ("google-gemma-4-31B-it", '<|tool_call>call:say{text:<|"|>', "text <"),
        ("MiniMax-M3", ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="say">\n]<]minimax[>[<text>', "text ]<"),
        ("openai-gpt-oss-120b", "<|channel|>final<|message|>", "words <|"),
    ],
)
def test_a_token_costs_the_same_at_the_beginning_and_at_the_end(name, start, piece, monkeypatch):
    """Counted in operations, not in time."""
    operations = 0
    original = machine.Machine._unwound

    def counted(self, *arguments):
        nonlocal operations
        operations += 1
        return original(self, *arguments)

    monkeypatch.setattr(machine.Machine, "_unwound", counted)
    parser = FormattedAnswer(form(name, enable_thinking=True), lambda: "id")
    parser.push(start, last=False)
    costs = []
    for _ in range(3000):
        before = operations
        assert parser.push(piece, last=False)
        costs.append(operations - before)
    assert max(costs[-100:]) <= max(costs[10:110])


def test_an_answer_that_breaks_its_format_keeps_what_was_parsed():
    text = '<tool_call>\n{"name": "say", "arguments": {"text": "hi"}}\n</tool_call>\nand more'
    for pieces in ([text], list(text)):
        parser = FormattedAnswer(form(QWEN), lambda: "id")
        content, _, calls = read(parser, pieces)
        assert parser.problem == "The model produced output that does not match the expected peg-native format"
        assert [(call.name, call.arguments) for call in calls] == [("say", '{"text": "hi"}')]
        assert content == ""


def test_an_answer_of_which_nothing_was_parsed_is_content_unless_it_is_streamed():
    for streamed, content in ((False, "<tool_call>"), (True, "")):
        parser = FormattedAnswer(form(QWEN), lambda: "id", streamed=streamed)
        assert read(parser, ["<tool_call>"])[0] == content


def test_whole_calls_have_compact_arguments():
    text = (
        '<tool_call>\n{"name": "say", "arguments": {"text": "é", "n" : 1}}\n</tool_call>\n<tool_call>\n{"name": "say"'
    )
    _, _, calls = read(WholeCalls(FormattedAnswer(form(QWEN), lambda: "id")), list(text))
    assert [call.arguments for call in calls] == ['{"text":"é","n":1}', "{}"]
