"""What a receipt is, and how it is made while an answer is being written.

A receipt lets a client check that the text it shows is the text this server computed from the verified file, for the
request it sent. It is not signed: it proves integrity between a client and its own server, not to a third party.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bankml import __version__


def sha256_hex(data: bytes) -> str:
    """The sha256 of `data`, 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Provenance:
    """Where an answer's tokens come from: the engine's name, the model file's sha256, and what the guard said of it."""

    engine: str
    model_sha256: str
    guard: str
    layer: "LayerIdentity | None" = None


@dataclass(frozen=True)
class LayerIdentity:
    """A derived model's name and the sha256 of its layer's content (64 hex digits)."""

    name: str
    sha256: str


class AnswerHash:
    """What `response_sha256` is of: the content, where an answer has nothing else.

    With reasoning or tool calls it is the sha256 of lines, each ended by a line feed: `content` and the content's own
    sha256, then `reasoning_content` and the reasoning's, if there is any, then for each call `tool_call`, the sha256 of
    its name and that of its arguments, with a space between.
    """

    def __init__(self) -> None:
        self._content = hashlib.sha256()
        self._reasoning = hashlib.sha256()
        self._reasons = False
        self._calls: list[tuple[hashlib._Hash, hashlib._Hash]] = []

    def content(self, text: str) -> None:
        self._content.update(_bytes(text))

    def reasoning(self, text: str) -> None:
        self._reasons = self._reasons or bool(text)
        self._reasoning.update(_bytes(text))

    def call(self, index: int, name: str, arguments: str) -> None:
        """A part of the call `index`; the next one where there is none of that number."""
        if not 0 <= index < len(self._calls):
            index = len(self._calls)
            self._calls.append((hashlib.sha256(), hashlib.sha256()))
        self._calls[index][0].update(_bytes(name))
        self._calls[index][1].update(_bytes(arguments))

    def hexdigest(self) -> str:
        if not self._reasons and not self._calls:
            return self._content.hexdigest()
        lines = [f"content {self._content.hexdigest()}"]
        if self._reasons:
            lines.append(f"reasoning_content {self._reasoning.hexdigest()}")
        lines += [f"tool_call {name.hexdigest()} {arguments.hexdigest()}" for name, arguments in self._calls]
        return sha256_hex("".join(f"{line}\n" for line in lines).encode())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class LogprobsHash:
    """The sha256 of an array of probabilities as it is written: its entries, joined by ", ", inside [ ]."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._empty = True

    def add(self, entries: bytes) -> None:
        """One entry, or several with what joins them."""
        self._hash.update(b"[" if self._empty else b", ")
        self._hash.update(entries)
        self._empty = False

    def hexdigest(self) -> str | None:
        """None when there were no entries: then no array is written."""
        if self._empty:
            return None
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()


class Tally:
    """Gathers what one receipt says: text as it is released, the time of the first token, and the counts at the end.

    `request_body` is the body exactly as it was received. `arrived` is the `time.monotonic()` of the request's first
    byte; both times of the receipt count from it. The text is hashed as it comes and not kept.
    """

    def __init__(
        self,
        provenance: Provenance,
        request_body: bytes,
        arrived: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provenance = provenance
        self._request_sha256 = sha256_hex(request_body)
        self._arrived = arrived
        self._clock = clock
        self._first_token: float | None = None
        self._answer = AnswerHash()
        self._logprobs = LogprobsHash()

    def token(self) -> None:
        """A token was computed; the first one ends the time to the first token, whether or not it released text."""
        if self._first_token is None:
            self._first_token = self._clock()

    def text(self, text: str) -> None:
        """A part of the answer's content, exactly as it is sent."""
        self._answer.content(text)

    def reasoning(self, text: str) -> None:
        """A part of the answer's reasoning."""
        self._answer.reasoning(text)

    def call(self, index: int, name: str, arguments: str) -> None:
        """A part of a tool call: its name comes first and once, its arguments in pieces."""
        self._answer.call(index, name, arguments)

    def part(self, kind: str, text: str, index: int, name: str) -> None:
        """A part of the answer as `check.Part` describes it."""
        if kind == "content":
            self.text(text)
        elif kind == "reasoning":
            self.reasoning(text)
        else:
            self.call(index, name, text)

    def logprobs(self, entry: bytes) -> None:
        """An entry of the tokens' probabilities, the JSON exactly as it is sent."""
        self._logprobs.add(entry)

    @property
    def request_sha256(self) -> str:
        return self._request_sha256

    @property
    def response_sha256(self) -> str:
        return self._answer.hexdigest()

    @property
    def ttft_ms(self) -> float | None:
        """Milliseconds from the request's first byte to the first token; None before there is one."""
        return None if self._first_token is None else self._since_arrival(self._first_token)

    def receipt(
        self, prompt_tokens: int | None, completion_tokens: int | None, seed: int | None = None
    ) -> dict[str, object]:
        """The receipt, in its fixed field order. Call it when the last of the text has been given to `text`.

        A count is None where whoever computed the answer did not say it; `logprobs_sha256` is there when the answer
        carries such entries.
        """
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
            **({} if logprobs is None else {"logprobs_sha256": logprobs}),
            "signed": False,
            **({} if self._provenance.layer is None else {"layer": asdict(self._provenance.layer)}),
            **({} if seed is None else {"seed": seed}),
        }

    def _since_arrival(self, moment: float) -> float:
        return round((moment - self._arrived) * 1000, 3)
