"""A conversation that is too long loses its oldest messages, never the last or the system ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api.api_toys import ToyModel, ask, toy_ollama
from tests.engine.engine_toys import hashing

MODEL = "toy-1m-f16"
ROLES = st.sampled_from(["user", "assistant", "system"])


def asked(messages, num_ctx, **more):
    options = {"num_predict": 1} | ({} if num_ctx is None else {"num_ctx": num_ctx})
    return {"model": MODEL, "messages": messages, "stream": False, "options": options, **more}


def cost(messages):
    """The tokens of the toys' prompt: a byte each of `Q:content` and a line end, and `A:`."""
    return sum(len(m["content"].encode()) + 3 for m in messages) + 2


def say(*texts):
    return [{"role": "user", "content": text} for text in texts]


def prompt_of(library, reply):
    return bytes(library.resident.engine.model.cache[: reply.json["prompt_eval_count"]]).decode()


def test_the_oldest_go_first_and_the_answer_says_how_many():
    application, library = toy_ollama(hashing)
    messages = say("one", "two", "three", "four")
    reply = ask(application, "/api/chat", asked(messages, 20))
    assert prompt_of(library, reply) == "Q:three\nQ:four\nA:" and reply.json["bankml_messages_left_out"] == 2
    reply = ask(application, "/api/chat", asked(messages, cost(messages) + 1))
    assert reply.json["prompt_eval_count"] == cost(messages) and "bankml_messages_left_out" not in reply.json


def test_without_num_ctx_the_servers_context_counts():
    application, library = toy_ollama(model=ToyModel(n_ctx=24))
    reply = ask(application, "/api/chat", asked(say("a" * 10, "b" * 10, "c"), None))
    assert prompt_of(library, reply) == f"Q:{'b' * 10}\nQ:c\nA:"


def test_system_messages_stay_in_their_places():
    application, library = toy_ollama(hashing)
    messages = [*say("aaaa"), {"role": "system", "content": "S"}, *say("bbbb", "c")]
    reply = ask(application, "/api/chat", asked(messages, 17))
    assert prompt_of(library, reply) == "Q:S\nQ:c\nA:" and reply.json["bankml_messages_left_out"] == 2


def test_a_last_message_that_does_not_fit_is_refused_and_so_is_any_without_truncation():
    application, _ = toy_ollama(hashing)
    reply = ask(application, "/api/chat", asked(say("x", "y" * 30), 20))
    assert (
        reply.status == 400
        and "request (35 tokens) exceeds the available context size (20 tokens)" in reply.json["error"]
    )
    reply = ask(application, "/api/chat", asked(say("x" * 10, "y" * 10), 20, truncate=False))
    assert reply.status == 400 and "(28 tokens)" in reply.json["error"]
    body = {"model": MODEL, "prompt": "y" * 20, "raw": True, "options": {"num_ctx": 20}}
    assert ask(application, "/api/generate", body).status == 400


@pytest.mark.parametrize("num_predict", [-1, 100, 6])
def test_an_answer_ends_where_its_context_is_full(num_predict):
    application, _ = toy_ollama(hashing)
    for path, body in (
        ("/api/chat", {"messages": say("four")}),
        ("/api/generate", {"prompt": "four"}),
        ("/api/generate", {"prompt": "nine byte", "raw": True}),
    ):
        options = {"num_ctx": 15, "num_predict": num_predict}
        final = ask(application, path, {"model": MODEL, "stream": False, "options": options, **body}).json
        assert (final["prompt_eval_count"], final["eval_count"], final["done_reason"]) == (9, 6, "length")


@given(st.lists(st.tuples(ROLES, st.text("ab", max_size=9)), min_size=1, max_size=8), st.integers(6, 60))
def test_as_few_messages_as_must_be_are_left_out(talk, num_ctx):
    messages = [{"role": role, "content": text} for role, text in talk[:-1]] + say(talk[-1][1])
    application, library = toy_ollama(hashing)
    reply = ask(application, "/api/chat", json.dumps(asked(messages, num_ctx)).encode())
    old = [i for i, m in enumerate(messages[:-1]) if m["role"] != "system"]
    kept = [[m for i, m in enumerate(messages) if i not in old[:n]] for n in range(len(old) + 1)]
    fitting = [left for left in kept if cost(left) < num_ctx]
    if not fitting:
        assert reply.status == 400
    else:
        assert prompt_of(library, reply) == "".join(f"Q:{m['content']}\n" for m in fitting[0]) + "A:"
