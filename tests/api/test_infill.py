"""`POST /infill`, and `suffix` on other routes: the text around a gap between the tokens for that."""

import json

import pytest

from bankml.api.infill import infill_tokens
from bankml.api.ollama.routes import Ollama
from bankml.api.routes import NativeApplication
from bankml.errors import RequestError
from bankml.library.registry import Registry
from bankml.library.request import InfillFile, InfillPrompt
from bankml.receipt.check import check
from bankml.text.vocabulary import FillIn, fill_in_tokens
from tests.api.api_toys import SOURCE, ToyModel, ask, toy_application, toy_library, toy_resident
from tests.engine.engine_toys import END, ByteVocabulary

PRE, SUF, MID, REP, SEP = 1, 2, 3, 4, 5
ALL = FillIn(PRE, SUF, MID, REP, SEP)
TOKENS = ByteVocabulary()


def spelled(prompt, fill_in=ALL, n_ctx=4096):
    names = {PRE: "<pre>", SUF: "<suf>", MID: "<mid>", REP: "<rep>", SEP: "<sep>"}
    return "".join(names.get(token, chr(token)) for token in infill_tokens(prompt, TOKENS, fill_in, n_ctx))


def test_the_prompt_names_a_repository_and_its_files():
    prompt = InfillPrompt(("a",), ("b",), "c", (InfillFile("x.py", "X"), InfillFile("tmp", "Y")))
    assert spelled(prompt) == "<rep>myproject\n<sep>x.py\nX<sep>tmp\nY<sep>filename\n<pre>ac<suf>b<mid>"


def test_without_those_tokens_files_are_snippets():
    prompt = InfillPrompt(("a",), ("b",), files=(InfillFile("x.py", "X"),))
    assert spelled(prompt, FillIn(PRE, SUF, MID)) == "\n\n--- snippet ---\n\nX<pre>a<suf>b<mid>"


def test_without_files_there_are_only_the_two_texts():
    assert spelled(InfillPrompt(("a", 66), ("b",))) == "<pre>aB<suf>b<mid>"


def test_control_tokens_in_the_texts_are_plain_text_but_not_in_what_the_filling_begins_with():
    made = infill_tokens(InfillPrompt(("<end>",), ("<end>",), "<end>"), TOKENS, ALL, 4096)
    assert made.count(END) == 1 and made.index(END) == len("<end>") + 1


def test_a_text_that_is_too_long_loses_what_is_far_from_the_gap():
    prompt = InfillPrompt(("x" * 3000 + "a",), ("b" + "y" * 3000,), "c", (InfillFile("f", "z" * 5000),))
    made = spelled(prompt)
    assert made.count("x") == 1536 - 1 and made.count("y") == 512 - 3 - 1
    assert len(infill_tokens(prompt, TOKENS, ALL, 4096)) == (4096 - 2048 + 2) + 3 + 1536 + 1 + 509
    assert "z" not in spelled(prompt, n_ctx=2048) and "<rep>" not in made


def test_ids_that_are_no_tokens_are_refused():
    with pytest.raises(RequestError, match="invalid tokens"):
        infill_tokens(InfillPrompt((300,), ("b",)), TOKENS, ALL, 4096)


def filling(body, path="/infill"):
    """The reply of a model that fills every gap with "Oslo.", and the context it saw."""
    seen = []

    def next_token(context):
        text = context[context.index(MID) + 1 :]
        seen[:] = context
        return b"Oslo."[len(text)] if len(text) < 5 else END

    resident = toy_resident(model=ToyModel(next_token))
    resident.fill_in = ALL
    sent = json.dumps(body).encode()
    application = NativeApplication(toy_library(resident), ollama=Ollama(Registry(None, SOURCE), 300.0))
    reply = ask(application, path, sent)
    assert reply.status == 200 and check(sent, reply.body).ok, reply.body
    return check(sent, reply.body).text, bytes(seen[: seen.index(MID)])


@pytest.mark.parametrize("stream", [False, True])
def test_a_gap_is_filled_with_a_receipt(stream):
    text, seen = filling({"input_prefix": "a", "input_suffix": "b", "input_extra": [{"text": "X"}], "stream": stream})
    assert text == "Oslo."
    assert seen == b"\x04myproject\n\x05tmp\nX\x05filename\n\x01a\x02b"


def test_a_suffix_is_a_gap_too():
    assert filling({"prompt": "a", "suffix": "b"}, "/v1/completions") == ("Oslo.", b"\x01a\x02b")
    for prompt in ("a", ""):
        body = {"model": "toy-1m", "prompt": prompt, "suffix": "b", "stream": False}
        assert filling(body, "/api/generate") == ("Oslo.", b"\x01" + prompt.encode() + b"\x02b")


def test_a_model_without_the_tokens_cannot():
    reply = ask(toy_application(), "/infill", {"input_prefix": "a", "input_suffix": "b"})
    missing = "prefix token is missing. suffix token is missing. middle token is missing. "
    assert reply.status == 501 and reply.error["message"] == f"Infill is not supported by this model: {missing}"


def test_the_tokens_are_found_by_key_and_by_text():
    names = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "a", "<|repo_name|>", "<|file_sep|>"]
    assert fill_in_tokens({"tokenizer.ggml.tokens": names}) == FillIn(0, 1, 2, 4, 5)
    assert fill_in_tokens({"tokenizer.ggml.tokens": ["a"]}) == FillIn()
    keyed = {"tokenizer.ggml.tokens": names, "tokenizer.ggml.prefix_token_id": 3, "tokenizer.ggml.fim_sep_token_id": 4}
    assert fill_in_tokens(keyed) == FillIn(3, 1, 2, 4, 4)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"input_prefix": None}, '"input_prefix" is required'),
        ({"input_suffix": None}, '"input_suffix" is required'),
        ({"prompt": 5}, '"prompt" must be a string'),
        ({"input_prefix": 5}, "Field 'input_prefix': expected a string or an array of strings and tokens, but got 5"),
        ({"input_extra": "x"}, '"input_extra" must be an array of {"filename": string, "text": string}'),
        ({"input_extra": [{"filename": "q"}]}, 'extra_context chunk must contain a "text" field with a string value'),
        ({"input_extra": [{"text": "q", "filename": 3}]}, 'extra_context chunk\'s "filename" field must be a string'),
        ({"n_indent": 2}, "Field 'n_indent': indentation limits are not supported (got 2)"),
    ],
)
def test_what_is_refused(more, message):
    reply = ask(toy_application(), "/infill", {"input_prefix": "a", "input_suffix": "b", **more})
    assert reply.status == 400 and reply.error["message"] == message
