"""Several answers in one response: `n`, and several prompts."""

import json
import threading
import time

import pytest

from bankml.api.routes import NativeApplication
from bankml.engine.engine import Engine
from bankml.http.json_out import json_bytes
from bankml.receipt.check import check
from tests.api.api_toys import MemoryReply, ask, toy_library, toy_resident
from tests.engine.cell_toys import CellModel
from tests.engine.engine_toys import ByteVocabulary, GreedySampler

CHAT, TEXT, RAW = "/v1/chat/completions", "/v1/completions", "/completion"


class SeededSampler(GreedySampler):
    """Draws a letter that depends on the best one and the seed."""

    def __init__(self, overrides):
        super().__init__()
        self._seed = overrides.seed or 0

    @property
    def seed(self):
        return self._seed

    def sample(self, logits):
        return 97 + (super().sample(logits) + self._seed) % 26


@pytest.fixture
def application():
    resident = toy_resident(model=CellModel(), sampler=SeededSampler)
    resident.engine.close()
    resident.engine = Engine(CellModel(), ByteVocabulary(), 4)
    library = toy_library(resident)
    library.parallel = 4
    library._queue._most = 4
    return NativeApplication(library)


def body(**fields):
    return {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5, **fields}


def checked(application, path, sent):
    data = json.dumps(sent).encode()
    reply = ask(application, path, data)
    assert reply.status == 200, reply.body
    found = check(data, reply.body)
    assert found.ok, found.problems
    return reply


def alone(application, path, **fields):
    return ask(application, path, fields).json


def test_n_answers_of_a_chat_draw_with_the_seeds_that_follow(application):
    value = checked(application, CHAT, body(n=3, seed=7)).json
    assert [choice["index"] for choice in value["choices"]] == [0, 1, 2]
    texts = [choice["message"]["content"] for choice in value["choices"]]
    assert texts == [
        alone(application, CHAT, **body(seed=seed))["choices"][0]["message"]["content"] for seed in (7, 8, 9)
    ]
    assert value["usage"]["completion_tokens"] == 5 and value["bankml_receipt"]["completion_tokens"] == 15


@pytest.mark.parametrize("path", [TEXT, RAW])
def test_several_prompts_have_their_answers_in_order(application, path):
    prompts = ["one A:", [65, 66, 67], "three A:"]
    value = checked(application, path, {"prompt": prompts, "max_tokens": 4, "n": 2, "seed": 3}).json
    found = [one["content"] for one in value] if path == RAW else [one["text"] for one in value["choices"]]
    wanted = []
    for prompt in prompts:
        for seed in (3, 4):
            one = alone(application, path, prompt=prompt, max_tokens=4, seed=seed)
            wanted.append(one["content"] if path == RAW else one["choices"][0]["text"])
    assert found == wanted
    if path == RAW:
        assert [one["index"] for one in value] == list(range(6))
        assert ["bankml_receipt" in one for one in value] == [False] * 5 + [True]


@pytest.mark.parametrize("path", [CHAT, TEXT, RAW])
def test_a_stream_has_all_of_them(application, path):
    fields = body(n=3, seed=5) if path == CHAT else {"prompt": ["A:", "B:"], "max_tokens": 5, "n": 2, "seed": 5}
    reply = checked(application, path, fields | {"stream": True})
    texts, finished = {}, []
    for event in reply.events:
        for one in event.get("choices", [event]):
            text = one["delta"].get("content") if path == CHAT else one.get("text", one.get("content"))
            texts[one["index"]] = texts.get(one["index"], "") + (text or "")
            if one.get("finish_reason") or one.get("stop"):
                finished.append(one["index"])
    assert sorted(finished) == sorted(texts) == list(range(3 if path == CHAT else 4))
    whole = ask(application, path, fields).json
    choices = whole if path == RAW else whole["choices"]
    wanted = [one["message"]["content"] if path == CHAT else one.get("text", one.get("content")) for one in choices]
    assert [texts[i] for i in range(len(wanted))] == wanted
    receipts = [event["bankml_receipt"] for event in reply.events if "bankml_receipt" in event]
    assert len(receipts) == 1 and "bankml_receipt" in [e for e in reply.events if e.get("choices", True)][-1]


def test_answers_that_were_exchanged_do_not_fit_the_receipt(application):
    for path in (CHAT, TEXT, RAW):
        sent = body(n=2, seed=1) if path == CHAT else {"prompt": ["A:", "B:"], "max_tokens": 4}
        data = json.dumps(sent).encode()
        value = ask(application, path, data).json
        choices = value if path == RAW else value["choices"]
        assert check(data, json_bytes(value)).ok
        choices[0]["index"], choices[1]["index"] = 1, 0
        assert not check(data, json_bytes(value)).ok, path


@pytest.mark.parametrize(
    ("path", "fields", "says"),
    [
        (CHAT, {"n": 5}, "Field 'n': Value must be between 1 <= value <= 4, but got 5"),
        (CHAT, {"n": 0}, "Field 'n': Value must be between 1 <= value <= 4, but got 0"),
        (CHAT, {"n_cmpl": 5}, "Field 'n_cmpl': Value must be between 1 <= value <= 4, but got 5"),
        (TEXT, {"prompt": []}, '"prompt" must not be empty'),
        (TEXT, {"prompt": ["a", ""]}, "the prompt is empty"),
        (TEXT, {"prompt": ["a"] * 2049}, "Field 'prompt': at most 2048 prompts a request, but got 2049"),
        (TEXT, {"prompt": ["a", "b"], "echo": True}, "Field 'echo': it is for one prompt and one answer"),
    ],
)
def test_what_is_refused(application, path, fields, says):
    reply = ask(application, path, (body() if path == CHAT else {}) | fields)
    assert reply.status == 400 and reply.error["message"].startswith(says)


def test_a_client_that_leaves_ends_all_of_them(application):
    reply = ask(application, CHAT, body(n=4, stream=True, max_tokens=2000), reply=MemoryReply(room=6))
    slots = application._library.resident.engine.slots
    assert reply.log.status == 499 and not any(slots.busy(number) for number in range(4))


def test_a_request_beyond_the_queue_is_a_503_that_says_when_to_try_again(application):
    library = application._library
    library._queue._limit = 1
    with library.turn(lambda: False):
        thread = threading.Thread(target=lambda: ask(application, CHAT, body()))
        thread.start()
        while not library.waiting:
            time.sleep(0.001)
        reply = ask(application, CHAT, body())
        assert reply.status == 503 and reply.headers["Retry-After"] == "1"
        assert reply.error["message"] == "the queue is full (1): try again later"
    thread.join()
