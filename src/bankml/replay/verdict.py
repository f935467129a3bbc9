"""What a replay found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


class NotReplayable(Exception):
    """A precondition fails: what would be computed is not what the receipt is about."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


@dataclass(frozen=True)
class Candidate:
    """A token, its text, and its probability by the logits, before any sampler."""

    token: int
    text: str
    probability: float


@dataclass(frozen=True)
class TokenDifference:
    """The first token of answer `answer` (from 0) that differs: the one computed, None for the end of the answer, and
    the one that the answer has, None where it ends. `position` counts the answer's tokens from 0."""

    answer: int
    position: int
    computed: Candidate | None
    answered: Candidate | None

    def sentence(self) -> str:
        where = f"token {self.position}" + (f" of answer {self.answer}" if self.answer else "")
        return f"{where} differs: computed {_shown(self.computed)}, the answer has {_shown(self.answered)}"


def _shown(candidate: Candidate | None) -> str:
    if candidate is None:
        return "its end"
    return f"{candidate.text!r} (token {candidate.token}, probability {candidate.probability:.4g})"


@dataclass(frozen=True)
class ReplayVerdict:
    """`precondition` is the name of the one that fails. `tokens` were compared, in `seconds`."""

    result: Literal["equal", "different", "not replayable"]
    problems: Sequence[str] = ()
    difference: TokenDifference | None = None
    precondition: str | None = None
    tokens: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.result == "equal"

    def to_json(self) -> dict[str, object]:
        found = self.difference
        return {
            "result": self.result,
            **({"problems": list(self.problems)} if self.problems else {}),
            **({"precondition": self.precondition} if self.precondition else {}),
            **({} if found is None else {"difference": _difference_json(found)}),
            **({"tokens": self.tokens, "seconds": round(self.seconds, 6)} if self.tokens else {}),
        }


def _difference_json(found: TokenDifference) -> dict[str, object]:
    def shown(one: Candidate | None) -> dict[str, object] | None:
        return None if one is None else {"token": one.token, "text": one.text, "probability": one.probability}

    return {
        "answer": found.answer,
        "position": found.position,
        "computed": shown(found.computed),
        "answered": shown(found.answered),
    }
