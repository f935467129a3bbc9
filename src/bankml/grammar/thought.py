"""Whether an answer is inside a thought, token by token, and the end that is forced on a thought of too many tokens.

The rules are those of llama-server b11192 (common/reasoning-budget.cpp).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

UNLIMITED = -1


class ThoughtState(Enum):
    OUTSIDE = "no thought has begun"
    INSIDE = "a thought is open"
    COMPLETING = "the budget is spent, and a character is not complete"
    FORCING = "the end is forced, token by token"
    ENDED = "a thought has ended"


class SequenceMatcher:
    """Finds the longest of some sequences of tokens that ends at the token given to `advance`."""

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self.sequences = [tuple(one) for one in dict.fromkeys(map(tuple, sequences)) if one]
        self._longest = max(map(len, self.sequences), default=0)
        self._seen: list[int] = []

    def advance(self, token: int) -> tuple[int, ...] | None:
        self._seen = [*self._seen, token][-self._longest :] if self._longest else []
        ends = [one for one in self.sequences if tuple(self._seen[-len(one) :]) == one]
        if not ends:
            return None
        self._seen = []
        return max(ends, key=len)

    def reset(self) -> None:
        self._seen = []


@dataclass
class ThoughtTracker:
    """`start` begins a thought, one of `ends` ends it. After `budget` tokens `forced` ends it; UNLIMITED: it may go on.

    `is_complete` tells whether a token ends with a complete character.
    """

    start: Sequence[int]
    ends: Sequence[Sequence[int]]
    forced: Sequence[int] = ()
    budget: int = UNLIMITED
    is_complete: Callable[[int], bool] = lambda token: True
    state: ThoughtState = ThoughtState.OUTSIDE
    ended_with: tuple[int, ...] = ()
    _remaining: int = field(default=0, init=False)
    _position: int = field(default=0, init=False)

    _end_wanted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._starts = SequenceMatcher([self.start])
        self._stops = SequenceMatcher(self.ends)

    @property
    def outside(self) -> bool:
        """A lazy grammar may be triggered."""
        return self.state in (ThoughtState.OUTSIDE, ThoughtState.ENDED)

    def end(self) -> None:
        """Ends the open thought before the next token; without one nothing happens. Called from any thread."""
        self._end_wanted = True

    @property
    def forced_token(self) -> int | None:
        """The one token that may come next."""
        if self._end_wanted:
            self._end_wanted = False
            if self.state is ThoughtState.INSIDE:
                self._force()
        if self.state is not ThoughtState.FORCING or self._position >= len(self.forced):
            return None
        return self.forced[self._position]

    def accept(self, token: int) -> None:
        if self.outside:
            self._outside(token)
        elif self.state is ThoughtState.FORCING:
            match = self._stops.advance(token)
            self._position += 1
            if self._position >= len(self.forced):
                self._end(match or ())
        else:
            self._inside(token)

    def _outside(self, token: int) -> None:
        if self._starts.advance(token) is None:
            return
        self.state, self._remaining, self.ended_with = ThoughtState.INSIDE, self.budget, ()
        self._stops.reset()
        if self.budget == 0:
            self._force()

    def _inside(self, token: int) -> None:
        match = self._stops.advance(token)
        if match is not None:
            self._end(match)
            return
        complete = self.is_complete(token)
        if self.state is ThoughtState.COMPLETING:
            if complete:
                self._force()
        elif self.budget != UNLIMITED:
            self._remaining -= 1
            if self._remaining <= 0:
                if complete:
                    self._force()
                else:
                    self.state = ThoughtState.COMPLETING
                    self._stops.reset()

    def _force(self) -> None:
        self.state, self._position = ThoughtState.FORCING, 0
        self._stops.reset()

    def _end(self, match: tuple[int, ...]) -> None:
        self.state, self.ended_with = ThoughtState.ENDED, match
        self._starts.reset()
