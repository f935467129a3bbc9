"""What a receipt says so that its answer can be computed again: its object `replay`.

    {"version": 1, "arithmetic": NAME, "route": PATH, "n_ctx": N, "cache_type": NAME, "llama_threads": N,
     "template": {"sha256": HEX, "rendered_at": SECONDS, "reasoning": BOOLEAN, "content_special": NAME},
     "fields": {NAME: VALUE, …},
     "answers": [{"prompt_sha256": HEX, "tokens_sha256": HEX, "seed": N or null, "finish_reason": TEXT,
                  "cached_tokens": N, "trace": [[POSITION, ROWS, KEPT], …]}, …]}

`arithmetic` names the bits, whichever kernels and processor compute them. The hashes of tokens are of their ids, int32,
little-endian. `trace` says how the keys and values of the prompt and the answer were computed: `kept` tokens from
`position` on of a micro-batch of `rows` tokens, or tokens that were computed one by one, where `rows` is 1. Without it
(null) the answer cannot be replayed. `template` is how a chat's prompt was rendered: the chat template, what it saw as
the present, and the server's `--reasoning` and `--content-special`. `fields` are the members of the request's body that
were replaced (`bankml generate`'s options).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

VERSION = 1
ARITHMETIC = "llama.cpp-b11192-haswell"

Span = tuple[int, int, int]


def token_hash(tokens: Sequence[int]) -> str:
    """The sha256 of token ids as int32, little-endian: 64 hex digits."""
    return sha256(struct.pack(f"<{len(tokens)}i", *tokens)).hexdigest()


@dataclass(frozen=True)
class Arithmetic:
    """What decides a model's bits besides its file: cells of a sequence, type of the K/V cache, and the number of
    threads of the llama-server whose bits are reproduced."""

    n_ctx: int
    cache_type: str
    llama_threads: int


@dataclass(frozen=True)
class PromptRendering:
    """How a chat's prompt was rendered: by a template of this sha256, at a moment (seconds since the epoch), by a
    server with these options."""

    sha256: str
    rendered_at: float
    reasoning: bool
    content_special: str


@dataclass(frozen=True)
class AnswerRecord:
    """One answer of a response. `trace` None: how its cells were computed is not known."""

    prompt_sha256: str
    tokens_sha256: str
    seed: int | None
    finish_reason: str
    cached_tokens: int
    trace: tuple[Span, ...] | None


@dataclass(frozen=True)
class ReplayRecord:
    """How a response was computed. `route` is the path that answered."""

    route: str
    arithmetic: Arithmetic
    template: PromptRendering | None
    answers: tuple[AnswerRecord, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        return {
            "version": VERSION,
            "arithmetic": ARITHMETIC,
            "route": self.route,
            "n_ctx": self.arithmetic.n_ctx,
            "cache_type": self.arithmetic.cache_type,
            "llama_threads": self.arithmetic.llama_threads,
            **({} if self.template is None else {"template": asdict(self.template)}),
            **({"fields": dict(self.fields)} if self.fields else {}),
            "answers": [_answer_json(answer) for answer in self.answers],
        }


def _answer_json(answer: AnswerRecord) -> dict[str, object]:
    return {
        "prompt_sha256": answer.prompt_sha256,
        "tokens_sha256": answer.tokens_sha256,
        "seed": answer.seed,
        "finish_reason": answer.finish_reason,
        "cached_tokens": answer.cached_tokens,
        "trace": None if answer.trace is None else [list(span) for span in answer.trace],
    }


def read_record(found: object) -> ReplayRecord:
    """The record in a receipt's `replay`. Raises ValueError with one sentence."""
    body = _object(found, "replay")
    if body.get("version") != VERSION:
        raise ValueError(f"replay.version is {body.get('version')!r:.40}, this bankml replays version {VERSION}")
    if body.get("arithmetic") != ARITHMETIC:
        raise ValueError(f"replay.arithmetic is {body.get('arithmetic')!r:.80}, this bankml computes {ARITHMETIC}")
    answers = body.get("answers")
    if not isinstance(answers, list) or not answers:
        raise ValueError("replay.answers is not an array of answers")
    arithmetic = Arithmetic(_count(body, "n_ctx"), _text(body, "cache_type"), _count(body, "llama_threads"))
    return ReplayRecord(
        _text(body, "route"),
        arithmetic,
        None if body.get("template") is None else _rendering(_object(body["template"], "replay.template")),
        tuple(_answer(one, f"replay.answers[{i}]") for i, one in enumerate(answers)),
        _object(body.get("fields", {}), "replay.fields"),
    )


def _rendering(body: Mapping[str, Any]) -> PromptRendering:
    path = "replay.template"
    moment, reasoning = body.get("rendered_at"), body.get("reasoning")
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        raise ValueError(f"{path}.rendered_at is not a time in seconds")
    if not isinstance(reasoning, bool):
        raise ValueError(f"{path}.reasoning is not true or false")
    return PromptRendering(_text(body, "sha256", path), moment, reasoning, _text(body, "content_special", path))


def _answer(found: object, path: str) -> AnswerRecord:
    body = _object(found, path)
    seed, spans = body.get("seed"), body.get("trace")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise ValueError(f"{path}.seed is not a whole number")
    return AnswerRecord(
        _text(body, "prompt_sha256", path),
        _text(body, "tokens_sha256", path),
        seed,
        _text(body, "finish_reason", path),
        _count(body, "cached_tokens", path),
        None if spans is None else _spans(spans, f"{path}.trace"),
    )


def _spans(found: object, path: str) -> tuple[Span, ...]:
    spans: list[Span] = []
    for span in found if isinstance(found, list) else [None]:
        if not (isinstance(span, list) and len(span) == 3 and all(type(n) is int and n >= 0 for n in span)):
            raise ValueError(f"{path} is not an array of [position, rows, kept]")
        spans.append((span[0], span[1], span[2]))
    return tuple(spans)


def _object(found: object, path: str) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"{path} is not an object")
    return found


def _text(body: Mapping[str, Any], name: str, path: str = "replay") -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{path}.{name} is not text")
    return value


def _count(body: Mapping[str, Any], name: str, path: str = "replay") -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{path}.{name} is not a number from 0")
    return value
