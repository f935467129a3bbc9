"""What two servers must have in common in an answer, made small: floats as their 32 bits in hexadecimal."""

import json
import struct

Answer = dict[str, object]


def essence(status: int, body: bytes, streamed: bool) -> Answer:
    """The parts of an answer that do not depend on time or on who gave it."""
    if status != 200:
        error = json.loads(body)["error"]
        return {"status": status} | {k: error[k] for k in ("message", "type", "n_prompt_tokens", "n_ctx") if k in error}
    if not streamed:
        return _of_one(json.loads(body))
    events = [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]
    return _of_chat_stream(events) if "choices" in events[0] else _of_completion_stream(events)


def _of_one(value: dict) -> Answer:
    if "choices" not in value:
        kept = ("content", "tokens", "prompt", "stop_type", "stopping_word", "tokens_cached", "tokens_evaluated",
                "tokens_predicted", "truncated", "has_new_line")  # fmt: skip
        return {k: value[k] for k in kept if k in value} | {"probs": entries(value.get("completion_probabilities"))}
    choice, usage = value["choices"][0], value["usage"]
    return {
        "text": choice["message"]["content"],
        "finish": choice["finish_reason"],
        "counts": [usage["prompt_tokens"], usage["completion_tokens"], value["timings"]["cache_n"]],
        "probs": entries((choice.get("logprobs") or {}).get("content")),
    }


def _of_chat_stream(events: list[dict]) -> Answer:
    choices = [choice for event in events for choice in event.get("choices", [])]
    last = next(event for event in events if event.get("timings"))
    probs = [entry for choice in choices for entry in (choice.get("logprobs") or {}).get("content", [])]
    return {
        "text": "".join(choice["delta"].get("content") or "" for choice in choices),
        "role": [i for i, choice in enumerate(choices) if "role" in choice["delta"]],
        "finish": choices[-1]["finish_reason"],
        "cached": last["timings"]["cache_n"],
        "probs": entries(probs),
    }


def _of_completion_stream(events: list[dict]) -> Answer:
    probs = [entry for event in events for entry in event.get("completion_probabilities", [])]
    text = "".join(event["content"] for event in events)
    return _of_one(events[-1]) | {"content": text, "probs": entries(probs)}


def entries(found: list[dict] | None) -> list[list]:
    """[text, bits, [[text, bits], …]] an entry; what `bytes` and `id` add is part of the text."""
    return [
        [_token(entry), bits_of(entry), [[_token(top), bits_of(top)] for top in _top(entry)]] for entry in found or []
    ]


def _top(entry: dict) -> list[dict]:
    return entry["top_logprobs"] if "top_logprobs" in entry else entry["top_probs"]


def _token(entry: dict) -> str:
    exact = bytes(entry["bytes"]) == entry["token"].encode()
    return f"{entry['id']} {entry['token'] if exact else entry['token'] + ' ' + bytes(entry['bytes']).hex()}"


def bits_of(entry: dict) -> str:
    name = "logprob" if "logprob" in entry else "prob"
    return struct.pack(">f", entry[name]).hex()
