"""Whatever is sent to Ollama's API is answered or refused in its shape; nothing is a failure of the server."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.library.parameters import PARAMETERS
from tests.api.api_toys import ask, toy_ollama

MODEL = "toy-1m-f16"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "tool"]) | VALUES, "content": st.text() | VALUES},
        optional={"thinking": VALUES, "images": VALUES, "tool_calls": VALUES},
    )
    | VALUES,
    max_size=4,
)
OPTIONS = st.dictionaries(st.sampled_from([*PARAMETERS, "stop", "num_gpu"]) | st.text(), VALUES, max_size=4)
FIELDS = {
    "/api/chat": {"messages": MESSAGES | VALUES, "tools": VALUES},
    "/api/generate": {"prompt": st.text() | VALUES, "system": VALUES, "raw": st.booleans() | VALUES, "context": VALUES},
}
COMMON = {
    "options": OPTIONS | VALUES, "format": st.just("json") | VALUES, "keep_alive": st.integers() | VALUES,
    "stream": st.booleans() | VALUES, "logprobs": st.booleans() | VALUES, "top_logprobs": VALUES, "truncate": VALUES,
    "think": VALUES,
}  # fmt: skip
MANAGING = ("/api/show", "/api/create", "/api/copy")
NAMED = {name: VALUES for name in ("model", "name", "source", "destination", "from", "modelfile", "files", "verbose")}


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(sorted(FIELDS)))
def test_any_body_of_a_question(data, path):
    optional = {**COMMON, **FIELDS[path]}
    body = data.draw(st.fixed_dictionaries({"model": st.just(MODEL) | VALUES}, optional=optional))
    sent = json.dumps(body).encode()
    reply = ask(toy_ollama()[0], path, sent)
    assert reply.finished and reply.status in (200, 400, 404)
    if reply.status == 200:
        assert reply.lines[-1]["done"] is True
    else:
        assert list(reply.json) == ["error"] and reply.json["error"]


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(MANAGING))
def test_any_body_about_models(data, path):
    body = data.draw(st.fixed_dictionaries({}, optional=NAMED))
    reply = ask(toy_ollama()[0], path, json.dumps(body).encode())
    assert reply.status in (400, 404) and list(reply.json) == ["error"]


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from([*sorted(FIELDS), *MANAGING]))
def test_any_json(value, path):
    reply = ask(toy_ollama()[0], path, json.dumps(value).encode())
    assert reply.status in (400, 404) and list(reply.json) == ["error"]
