"""What llama-server was asked: (name, path, body), in an order that both servers go through on one slot."""

WORDS = (
    "the",
    "rain",
    "and",
    "the",
    "wind",
    "ring",
    "on",
    "an",
    "iron",
    "roof;",
    "where",
    "is",
    "the",
    "one",
    "who",
    "was",
    "here?",
    "",
)
HELD_TO = {
    "letters": {"grammar": "root ::= [a-c]+"},
    "yes or no": {"grammar": 'root ::= "yes" | "no"'},
    "lines": {"grammar": 'root ::= (line "\\n"){2,3}\nline ::= [0-9]{1,3} ("," [0-9]+)*'},
    "beyond ASCII": {"grammar": 'root ::= ([é-ü日] | "🙂" | " "){3}'},
    "no letter": {"grammar": "root ::= [^a-zA-Z]{8}"},
    "ends at once": {"grammar": 'root ::= ""'},
    "a token": {"grammar": "root ::= [a-z ]+ <|im_end|> [0-9]*"},
    "any object": {"json_schema": {}},
    "object": {
        "json_schema": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 4}, "age": {"type": "integer", "minimum": 3}},
            "required": ["name", "age"],
            "additionalProperties": False,
        }
    },
    "array": {"json_schema": {"type": "array", "items": {"enum": ["a", 1, None]}, "minItems": 2, "maxItems": 3}},
    "integer": {"json_schema": {"type": "integer", "minimum": -30, "maximum": 120}},
    "pattern": {"json_schema": {"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}(é|x)?$"}},
}
"""What `/completion` is asked to hold to, by name."""

CHAT, COMPLETION = "/v1/chat/completions", "/completion"


def say(*contents: str) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[i % 2], "content": content} for i, content in enumerate(contents)]


def chat(*contents: str, **fields) -> dict:
    """Every chat asks for probabilities, whose 32 bits tell more than a text."""
    return {
        "messages": say(*contents),
        "temperature": 0,
        "max_tokens": 8,
        "logprobs": True,
        "top_logprobs": 2,
        **fields,
    }


def prose(n_words: int) -> str:
    return " ".join(WORDS[i * i % len(WORDS)] for i in range(n_words))


def cases() -> list[tuple[str, str, object]]:
    return [
        *greedy(), *long(), *seeded(), *samplers(), *cached(), *stops(), *completions(), *texts(), *refusals(), *held(),
    ]  # fmt: skip


def greedy():
    for i, words in enumerate(["Hello", "Où est l'été, où sont les Überraschungen? 🙂", "1 + 1 = \n\n\t2"]):
        yield f"greedy {i}", CHAT, chat(words, max_tokens=24, cache_prompt=False)
        yield f"greedy {i} streamed", CHAT, chat(words, max_tokens=24, cache_prompt=False, stream=True)
    yield "unlimited below the end of the context", CHAT, chat("So", max_tokens=40, logprobs=False, top_logprobs=None)


def long():
    """Lengths on both sides of the attention kernels' borders and of a micro-batch."""
    for tokens in (70, 300, 600, 1100):
        yield f"long {tokens}", CHAT, chat(prose(tokens * 2 // 5), cache_prompt=False, max_tokens=6)


def seeded():
    for seed in range(4):
        body = chat(prose(9 + seed), seed=seed, temperature=0.9, max_tokens=16, cache_prompt=False, stream=seed == 3)
        yield f"seed {seed}", CHAT, body


SAMPLERS = {
    "penalties": {"repeat_penalty": 1.3, "presence_penalty": 0.4, "frequency_penalty": 0.2, "repeat_last_n": 20},
    "dry": {"dry_multiplier": 0.8, "dry_base": 1.5, "dry_allowed_length": 1, "dry_penalty_last_n": 100},
    "top_n_sigma": {"top_n_sigma": 1.2},
    "typical": {"typical_p": 0.6},
    "xtc": {"xtc_probability": 0.7, "xtc_threshold": 0.05},
    "dynamic temperature": {"dynatemp_range": 0.5, "dynatemp_exponent": 1.5},
    "mirostat 1": {"mirostat": 1, "mirostat_tau": 3.0},
    "mirostat 2": {"mirostat": 2, "mirostat_tau": 3.0, "mirostat_eta": 0.2},
    "no top_k": {"top_k": 0, "top_p": 1.0, "min_p": 0.0},
    "letters": {"samplers": "kmt", "top_k": 9},
    "names": {"samplers": ["temperature", "top_p"], "top_p": 0.7},
    "biases": {"logit_bias": [["the", 6.0], [40, 5], [41, False]]},
    "no end": {"ignore_eos": True, "logit_bias": {"2": 30}},
    "after sampling": {"post_sampling_probs": True, "top_p": 0.5},
}


def samplers():
    for i, (name, fields) in enumerate(SAMPLERS.items()):
        yield name, CHAT, chat(prose(12), seed=70 + i, temperature=1.1, max_tokens=12, cache_prompt=False, **fields)


def cached():
    turns = [prose(40), "a kind of answer", prose(15), "and another", "so"]
    for n in (1, 3, 5):
        yield f"turn {n}", CHAT, chat(*turns[:n])
    yield "the last turn again", CHAT, chat(*turns)
    yield "back to the first", CHAT, chat(turns[0], stream=True)
    yield "a beginning brought along", CHAT, chat("Who?", "It is", max_tokens=5)


def stops():
    """Greedy answers are known, and so are their letters: `e` and the space come up in nearly all."""
    for stream in (False, True):
        for stop in (["e"], ["in", "on", "er"], ["\n", "the", "ow", "s"], ["never said"]):
            body = chat(prose(7), stop=stop, stream=stream, max_tokens=20, seed=5, temperature=0.8, cache_prompt=False)
            yield f"stop {stop} {'streamed' if stream else 'whole'}", CHAT, body
        # One of the models says "wc" here and ends: what was held comes with the token that ends it.
        held = chat(prose(9), stop=["czz"], stream=stream, max_tokens=16, seed=0, temperature=0.9, cache_prompt=False)
        yield f"held until the end {'streamed' if stream else 'whole'}", CHAT, held
    yield "the end of the answer", CHAT, chat("x", logit_bias={"2": 100}, stop=["e"])
    yield "the end of the answer streamed", CHAT, chat("x", logit_bias={"2": 100}, stream=True)


def completions():
    yield "completion", COMPLETION, {"prompt": "the wind", "n_predict": 9, "temperature": 0, "cache_prompt": False}
    probs = {"n_probs": 3, "n_predict": 12, "seed": 8, "temperature": 0.9, "cache_prompt": False, "return_tokens": True}
    yield "completion of tokens", COMPLETION, {"prompt": [10, 20, 30, 280], **probs}
    yield "completion of both", COMPLETION, {"prompt": ["<|im_start|>the", 70, " rain"], **probs}
    yield "completion of one in an array", COMPLETION, {"prompt": ["on an iron roof"], **probs, "logprobs": 1}
    yield "completion stopped", COMPLETION, {"prompt": "where", **probs, "stop": ["e", "a", "in"]}
    yield "completion streamed", COMPLETION, {"prompt": "where", **probs, "stream": True}
    yield "completion of no tokens asked", COMPLETION, {"prompt": "abc", "n_predict": 0, "temperature": 0}
    emoji = {"prompt": "🙂 ", "n_predict": 3, "temperature": 0, "logit_bias": [[tokens_of("ð"), 100]], "n_probs": 1}
    yield "completion cut within a character", COMPLETION, {**emoji, "return_tokens": True, "cache_prompt": False}
    full = {"prompt": [40] * 2040, "n_predict": -1, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    yield "completion to the end of the context", COMPLETION, full


def tokens_of(spelling: str) -> int:
    from tests.end_to_end.tiny import vocabulary

    return vocabulary().index(spelling)


def texts():
    yield "tokenize", "/tokenize", {"content": "the <|im_end|> été 🙂\n\n  and the other one's"}
    yield "apply-template", "/apply-template", {"messages": say("Hi", "there", "you")}


def refusals():
    yield "too long", CHAT, chat(prose(1200))
    yield "one token too long", COMPLETION, {"prompt": [40] * 2048}
    yield "no such token", COMPLETION, {"prompt": [1, 99999]}
    yield "no prompt of that kind", COMPLETION, {"prompt": 5}
    yield "an empty array", COMPLETION, {"prompt": []}
    yield "repeat_last_n", CHAT, chat("x", repeat_last_n=-1)
    yield "repeat_penalty", CHAT, chat("x", repeat_penalty=0)
    yield "top_logprobs alone", CHAT, chat("x", logprobs=None)
    yield "n", CHAT, chat("x", n=2)
    yield "no messages", CHAT, {"max_tokens": 2}


def held():
    """Each greedy or seeded, whole or streamed, in turn."""
    for i, (name, wanted) in enumerate(HELD_TO.items()):
        body = {"prompt": "the one ", "n_predict": 14, "n_probs": 1, "cache_prompt": False, **wanted}
        yield f"held to {name}", COMPLETION, {**body, "temperature": 0, "stream": i % 2 == 0}
        yield f"held to {name}, seeded", COMPLETION, {**body, "seed": i, "temperature": 0.9, "stream": i % 2 == 1}
    yield (
        "held, and stopped",
        COMPLETION,
        {"prompt": "a", "temperature": 0, "grammar": "root ::= [x-z]{5}", "stop": "z"},
    )
    for schema in ({"type": "frob"}, "x", [], True, {"type": "string", "pattern": "^(a$"}):
        yield f"no schema: {schema}", COMPLETION, {"prompt": "a", "json_schema": schema}
