"""The answers that are being generated, by the id that their clients know, so that another request can act on one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class EndableThought(Protocol):
    """The thought of an answer (grammar.thought.ThoughtTracker)."""

    def end(self) -> None:
        """Ends it before the next token, if one is open. Called from any thread."""


class LiveAnswers:
    """Thread-safe. The thought of an answer is None where its request did not ask for control of it."""

    def __init__(self) -> None:
        self._thoughts: dict[str, EndableThought | None] = {}
        self._lock = threading.Lock()

    @contextmanager
    def generating(self, id_: str, thought: EndableThought | None) -> Iterator[None]:
        """For the duration of the `with` block the answer `id_` is live; one without an id ("") never is."""
        if not id_:
            yield
            return
        with self._lock:
            self._thoughts[id_] = thought
        try:
            yield
        finally:
            with self._lock:
                del self._thoughts[id_]

    def end_thought(self, id_: str) -> str:
        """Ends the thought of the answer `id_`. Returns why that is impossible, in llama-server's words, else ""."""
        with self._lock:
            if id_ not in self._thoughts:
                return "no active completion for this id"
            thought = self._thoughts[id_]
        if thought is None:
            return "reasoning control not enabled for this completion"
        thought.end()
        return ""
