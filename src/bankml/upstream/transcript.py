"""The engine's chat responses: read for their content and counts, forwarded unchanged, with a receipt added.

No byte of the engine's is rewritten. A JSON response gets one more member before its last brace, a stream one more
event before `data: [DONE]`. A response that two clients could read differently (a duplicate key, a lone surrogate, a
lone CR or a named event) is refused, because the receipt would be true for one reading only.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from bankml.http.json_out import json_bytes, sse_event
from bankml.receipt.check import RECEIPT_KEY, probabilities, texts
from bankml.receipt.messages import ChatMessages
from bankml.receipt.receipt import Tally
from bankml.upstream.engine_answer import broken

_WHITE = b" \t\r\n"
_EVENT_END = re.compile(rb"\n\r?\n")
_DONE = re.compile(rb"\[DONE\]")


@dataclass(frozen=True)
class ReportedUsage:
    """Token counts as the engine reports them; None where it does not."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None


def engine_object(data: bytes) -> dict[str, Any]:
    """The JSON object that `data` is. Raises EngineFailed."""
    try:
        value = _JSON.decode(data.decode("utf-8"))
    except RecursionError:
        raise broken("its JSON is nested too deeply") from None
    except ValueError:
        raise broken("it is not JSON") from None
    if not isinstance(value, dict):
        raise broken("it is not a JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise broken("it has a duplicate key")
    return members


def _no_constant(name: str) -> NoReturn:
    raise broken(f"it contains {name}, which is not JSON")


# Made once: that is half the cost of reading an event.
_JSON = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)


COMMON_FIELDS = ("created", "id", "model", "system_fingerprint", "object")
"""What every chunk of a stream has in common."""


class Transcript:
    """What has been read of one response. `tally` hashes its content."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._messages = ChatMessages()
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}
        self._common: dict[str, Any] = {}
        self.choices_seen = False
        self.finish = ""

    def read(self, found: dict[str, Any], part: str, source: bytes) -> None:
        """Reads the object of a response or an event, whose choices each have a `part` and whose JSON is `source`.

        Raises EngineFailed.
        """
        if RECEIPT_KEY in found:
            raise broken("it has a receipt already: the engine must be llama-server itself")
        self._common = self._common or {name: found[name] for name in COMMON_FIELDS if name in found}
        choices = found.get("choices")
        if not isinstance(choices, list) or not all(
            isinstance(choice, dict) and isinstance(choice.get(part), dict) for choice in choices
        ):
            raise broken(f"it has no choices with a {part} each")
        try:
            self._messages.add(found)
            for text in texts(found, "messages"):
                self._tally.text(text)
        except UnicodeEncodeError:
            raise broken("its text contains a lone surrogate") from None
        except ValueError as error:
            raise broken(str(error)) from None
        if any(choice.get("logprobs") for choice in choices):
            for entries in probabilities(source.decode("utf-8")):
                self._tally.logprobs(entries)
        for choice in choices:
            self.choices_seen = True
            reason = choice.get("finish_reason")
            self.finish = reason if isinstance(reason, str) else self.finish
        self._usage = _mapping(found.get("usage")) or self._usage
        self._timings = _mapping(found.get("timings")) or self._timings

    @property
    def counts(self) -> ReportedUsage:
        """OpenAI's `usage`, or llama-server's `timings`, which are in its streams by default."""
        prompt, completion = (_count(self._usage.get(f"{name}_tokens")) for name in ("prompt", "completion"))
        fresh, cached, made = (_count(self._timings.get(f"{name}_n")) for name in ("prompt", "cache", "predicted"))
        if prompt is None and fresh is not None and cached is not None:
            prompt = fresh + cached
        return ReportedUsage(prompt, cached, made if completion is None else completion)

    def receipt_chunk(self) -> dict[str, object]:
        """The receipt in a chunk with a choice that adds nothing: clients expect every chunk to have one."""
        choice: dict[str, Any] = {"finish_reason": None, "index": 0, "delta": {}}
        return {"choices": [choice], **self._common, RECEIPT_KEY: self.receipt()}

    def receipt(self) -> dict[str, object]:
        counts = self.counts
        try:
            self._tally.message(self._messages.sha256(), self._messages.finish_reason)
        except UnicodeEncodeError:
            raise broken("its message contains a lone surrogate") from None
        return self._tally.receipt(counts.prompt, counts.completion)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def with_receipt(body: bytes, transcript: Transcript) -> bytes:
    """A JSON response with its receipt as the last member. Raises EngineFailed for what is not a chat response."""
    transcript.read(engine_object(body), "message", body)
    if not transcript.choices_seen:
        raise broken("it has no choices")
    # JSON's white space can only surround the object, so its last other byte is the brace that ends it.
    end = len(body.rstrip(_WHITE)) - 1
    return body[:end] + b',"%s":%s' % (RECEIPT_KEY.encode(), json_bytes(transcript.receipt())) + body[end:]


class EventStream:
    """A streamed response: bytes in as they are received, complete events out, unchanged.

    `split` returns the events that are complete now, and `read` reads those. Between the two they may be sent already,
    so that reading them delays no client: an event that cannot be read ends the stream, and no receipt follows. [DONE]
    is kept for `end`. An error event is forwarded like any other, and the stream gets no receipt.
    """

    def __init__(self, tally: Tally, transcript: Transcript, most: int) -> None:
        self._tally = tally
        self._transcript = transcript
        self._most = most
        self._partial = bytearray()
        self._searched = 0  # bytes of `_partial` in which no event ends
        self._unread: list[bytes] = []
        self._done = b""
        self.failed = False

    def take(self, data: bytes) -> bytes:
        """The events that are complete now; they have been read. Raises EngineFailed."""
        events = self.split(data)
        self.read()
        return events

    def split(self, data: bytes) -> bytes:
        """The events that are complete now, without [DONE]. Raises EngineFailed for one that is too long."""
        if not (self._partial or self._done) and data.endswith(b"\n\n") and b"[DONE]" not in data:
            self._unread.append(data)  # most often: complete events, and not the last
            return data
        buffered: bytes | bytearray = data
        if self._partial:
            self._partial += data
            buffered = self._partial
        start, at = 0, max(0, self._searched - 2)
        while end := _EVENT_END.search(buffered, at):
            if (
                not self._done
                and _DONE.search(buffered, start, end.end())
                and _data(bytes(buffered[start : end.end()])) == b"[DONE]"
            ):
                self._done = bytes(buffered[start : end.end()])
            if self._done:
                break
            start = at = end.end()
        passed = bytes(buffered[:start])
        if buffered is self._partial:
            del self._partial[:start]
        else:
            self._partial = bytearray(buffered[start:])
        self._searched = len(self._partial)
        if self._searched > self._most:
            raise broken(f"an event is longer than {self._most} bytes")
        if passed:
            self._unread.append(passed)
        return passed

    def read(self) -> None:
        """Reads the events that `split` returned. Raises EngineFailed."""
        unread, self._unread = self._unread, []
        for events in unread:
            for one in _EVENT_END.split(events):
                self._read(one)
        if self._done and self._partial != self._done:
            raise broken("bytes follow data: [DONE]")

    def end(self) -> bytes:
        """The receipt and [DONE]. Raises EngineFailed where the engine's stream did not end with [DONE]."""
        if not self._done:
            if self.failed and not self._partial:
                return b""
            raise broken("the stream ended without data: [DONE]")
        if self.failed:
            return self._done
        if not self._transcript.choices_seen:
            raise broken("the stream has no choices")
        return sse_event(self._transcript.receipt_chunk()) + self._done

    def _read(self, one: bytes) -> None:
        data = _data(one)
        if data is None:
            return
        found = engine_object(data)
        if "error" in found:
            self.failed = True
            return
        if found.get("choices"):
            self._tally.token()
        self._transcript.read(found, "delta", data)


def _data(one: bytes) -> bytes | None:
    """The value of an event's only line of data; None where it has none.

    Raises EngineFailed for lines other than data and comments, which other readers of event streams interpret.
    """
    if b"\r" in one and b"\r" in one.replace(b"\r\n", b"").removesuffix(b"\r"):
        raise broken("a line of an event ends in CR alone")
    try:
        one.decode("utf-8")
    except UnicodeDecodeError:
        raise broken("an event is not UTF-8") from None
    values = []
    for line in one.split(b"\n"):
        if line.startswith(b"data:"):
            values.append(line[5:].strip())
        elif not line.startswith(b":") and line not in (b"", b"\r"):
            raise broken("an event has a line that is neither data nor a comment")
    if len(values) > 1:
        raise broken("an event has two lines of data")
    return values[0] if values else None
