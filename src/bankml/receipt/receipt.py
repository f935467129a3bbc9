"""Receipts, and how one is built while a response is generated.

A receipt lets a client check that the text it has is the text this server computed from the verified file for the
request it sent. Without a key it is not signed, and proves integrity between a client and its own server, not to a
third party (issuer).
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bankml import __version__
from bankml.receipt.issuer import UNSIGNED, Issuer, Outcome
from bankml.receipt.replay_record import ReplayRecord


def sha256_hex(data: bytes) -> str:
    """The sha256 of `data`, 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Provenance:
    """The origin of tokens: the engine's name, the model file's sha256, and the guard's verdict."""

    engine: str
    model_sha256: str
    guard: str
    layer: "LayerIdentity | None" = None


@dataclass(frozen=True)
class LayerIdentity:
    """A derived model's name and the sha256 of its layer's content (64 hex digits)."""

    name: str
    sha256: str


class LogprobsHash:
    """The sha256 of the serialized array of probabilities: its entries, joined by ", ", inside [ ]."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._empty = True

    def add(self, entries: bytes) -> None:
        """One entry, or several with their separators."""
        self._hash.update(b"[" if self._empty else b", ")
        self._hash.update(entries)
        self._empty = False

    def hexdigest(self) -> str | None:
        """None when there were no entries: then there is no array."""
        if self._empty:
            return None
        complete = self._hash.copy()
        complete.update(b"]")
        return complete.hexdigest()


class Tally:
    """Accumulates one receipt: text as it is sent, the time of the first token, and the counts at the end.

    `request_body` is the body exactly as received. `arrived` is the `time.monotonic()` of the request's first
    byte; both times of the receipt count from it. The text is hashed incrementally and not kept.
    """

    def __init__(
        self,
        provenance: Provenance,
        request_body: bytes,
        arrived: float,
        clock: Callable[[], float] = time.monotonic,
        issuer: Issuer = UNSIGNED,
    ) -> None:
        self._issuer = issuer
        self._issued = False
        self._provenance = provenance
        self._request_sha256 = sha256_hex(request_body)
        self._arrived = arrived
        self._clock = clock
        self._first_token: float | None = None
        self._text = hashlib.sha256()
        self._logprobs = LogprobsHash()
        self._message: str | None = None
        self._finish_reason: str | None = None
        self._slot_file: str | None = None
        self._vectors: int | None = None

    def restored_slot(self, sha256: str) -> None:
        """Keys and values of the prompt may come from a slot file with this sha256 rather than from the weights."""
        self._slot_file = sha256

    def message(self, sha256: str | None, finish_reason: str | None) -> None:
        """The complete message: the hash of its canonical form (messages.ChatMessages), None where it is plain text,
        and why it ended."""
        self._message, self._finish_reason = sha256, finish_reason

    def token(self) -> None:
        """A token was computed. The first one ends the time to the first token, whether or not it produced text."""
        if self._first_token is None:
            self._first_token = self._clock()

    def text(self, text: str) -> None:
        """A part of the response's text, exactly as it is sent."""
        self._text.update(text.encode("utf-8"))

    def vectors(self, data: bytes, count: int) -> None:
        """The vectors of an answer (vectors.vector_bytes), or its scores, and their number. They are in place of a
        text."""
        self._text.update(data)
        self._vectors = count

    def logprobs(self, entry: bytes) -> None:
        """An entry of the tokens' probabilities: the JSON exactly as it is sent."""
        self._logprobs.add(entry)

    @property
    def request_sha256(self) -> str:
        return self._request_sha256

    @property
    def response_sha256(self) -> str:
        return self._text.hexdigest()

    @property
    def ttft_ms(self) -> float | None:
        """Milliseconds from the request's first byte to the first token; None before there is one."""
        return None if self._first_token is None else self._since_arrival(self._first_token)

    def receipt(
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        seed: int | None = None,
        replay: ReplayRecord | None = None,
    ) -> dict[str, object]:
        """The receipt, in its fixed field order. Call it after the last `text`. Raises LogUnavailable.

        A count is None where the engine did not report it; `logprobs_sha256` is present when the response has
        probabilities, `message_sha256` when its message is more than text, `finish_reason` when `message` gave one,
        `replay` when the tokens were computed here.
        """
        receipt = self._issuer.issue(self._fields(prompt_tokens, completion_tokens, seed, replay))
        self._issued = True
        return receipt

    def unfinished(self, outcome: Outcome, prompt_tokens: int | None, completion_tokens: int | None) -> None:
        """Records that the response has not come to its end, unless `receipt` was called: the text until then, and
        what ended it. Raises LogUnavailable."""
        if not self._issued:
            self._issuer.issue_unfinished(self._fields(prompt_tokens, completion_tokens), outcome)

    def _fields(
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        seed: int | None = None,
        replay: ReplayRecord | None = None,
    ) -> dict[str, object]:
        logprobs = self._logprobs.hexdigest()
        return {
            "bankml": __version__,
            "engine": self._provenance.engine,
            "model_sha256": self._provenance.model_sha256,
            "guard": self._provenance.guard,
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "ttft_ms": self.ttft_ms,
            "wall_ms": self._since_arrival(self._clock()),
            "response_sha256": self.response_sha256,
            "request_sha256": self._request_sha256,
            **({} if self._vectors is None else {"vectors": self._vectors}),
            **({} if self._message is None else {"message_sha256": self._message}),
            **({} if logprobs is None else {"logprobs_sha256": logprobs}),
            **({} if self._slot_file is None else {"slot_file_sha256": self._slot_file}),
            **({} if self._finish_reason is None else {"finish_reason": self._finish_reason}),
            "signed": False,
            **({} if self._provenance.layer is None else {"layer": asdict(self._provenance.layer)}),
            **({} if seed is None else {"seed": seed}),
            **({} if replay is None else {"replay": replay.to_json()}),
        }

    def _since_arrival(self, moment: float) -> float:
        return round((moment - self._arrived) * 1000, 3)
