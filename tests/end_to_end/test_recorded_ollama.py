"""What llama-server answered, asked again through Ollama's API: the same text, counts, cache reuse, probabilities."""

import json

from bankml.receipt.check import check
from tests.end_to_end.answers import bits_of
from tests.end_to_end.servers import ask, exchange
from tests.end_to_end.test_recorded_answers import RECORDED, served, wanted  # noqa: F401

OPTIONS = {
    "temperature", "top_k", "top_p", "min_p", "typical_p", "seed", "repeat_last_n", "repeat_penalty",
    "presence_penalty", "frequency_penalty", "stop",
}  # fmt: skip
OF_OPTIONS = ("Field 'repeat_last_n'", "Failed to initialize samplers: penalty_repeat")
BODY = {"messages", "max_tokens", "logprobs", "top_logprobs", "stream", "cache_prompt"}


def as_ollamas(case):
    """The body of /api/chat that asks the same; None where Ollama's API cannot say it."""
    body = case["body"]
    if case["path"] != "/v1/chat/completions" or not set(body) <= OPTIONS | BODY or "messages" not in body:
        return None
    options = {name: value for name, value in body.items() if name in OPTIONS} | {"num_predict": body["max_tokens"]}
    rest = {name: body[name] for name in ("messages", "logprobs", "top_logprobs") if body.get(name) is not None}
    return {**rest, "options": options, "stream": body.get("stream", False), "truncate": False}


def ollamas_essence(status, data):
    """The parts of an answer that /v1 gives too, in the form in which they were recorded; tokens without their ids."""
    lines = [json.loads(line) for line in data.splitlines()]
    if status != 200:
        return {"status": status, "message": lines[0]["error"]}
    last = lines[-1]
    return {
        "text": "".join(line["message"]["content"] for line in lines),
        "finish": last["done_reason"],
        "counts": [last["prompt_eval_count"], last["eval_count"], last["bankml_cache_n"]],
        "probs": [_entry(entry) for line in lines for entry in line.get("logprobs", [])],
    }


def _entry(entry):
    return [_text(entry), bits_of(entry), [[_text(top), bits_of(top)] for top in entry["top_logprobs"]]]


def _text(entry):
    exact = bytes(entry["bytes"]) == entry["token"].encode()
    return entry["token"] if exact else f"{entry['token']} {bytes(entry['bytes']).hex()}"


def comparable(want):
    """What was recorded, as far as a whole answer and a streamed one tell it alike. Of an option's refusal only that it
    is one: here its sentence names the option, as a body of Ollama's has it."""
    if want.get("message", "").startswith(OF_OPTIONS):
        return {"status": want["status"]}
    want = {
        name: value
        for name, value in want.items()
        if name in ("text", "finish", "counts", "probs", "status", "message")
    }
    if "probs" in want:
        bare = [[_bare(text), bits, [[_bare(top), its] for top, its in tops]] for text, bits, tops in want["probs"]]
        want["probs"] = bare
    return want


def _bare(text):
    """A token without the id before it."""
    return text.partition(" ")[2]


def test_every_recorded_chat_that_ollamas_api_can_ask(served):  # noqa: F811
    path, gate, _ = served
    answers = RECORDED["models"][path.stem]["answers"]
    by_name = {case["name"]: answer for case, answer in zip(RECORDED["cases"], answers, strict=True)}
    model, wrong, asked = path.stem, [], 0
    fresh = json.dumps({"model": model, "keep_alive": 0}).encode()
    exchange(gate, "POST", "/api/chat", fresh)
    for case in RECORDED["cases"]:
        body = as_ollamas(case)
        if case["body"].get("repeat_last_n") == -1:
            continue  # the context's length in Ollama's API, refused in llama-server's
        if body is None:
            ask(gate, case["path"], case["body"])  # what it leaves in the cache counts for the next
            continue
        if case["body"].get("cache_prompt") is False:
            exchange(gate, "POST", "/api/chat", fresh)
        sent = json.dumps({"model": model, **body}).encode()
        status, _, data = exchange(gate, "POST", "/api/chat", sent)
        want, got = comparable(wanted(case, by_name)), ollamas_essence(status, data)
        asked += 1
        if any(got[name] != value for name, value in want.items()):
            wrong.append(
                (case["name"], {name: (value, got[name]) for name, value in want.items() if got[name] != value})
            )
        if status == 200:
            assert check(sent, data).problems == ()
    assert asked >= 30 and not wrong, f"{len(wrong)} of {asked} differ: {wrong[:3]}"
