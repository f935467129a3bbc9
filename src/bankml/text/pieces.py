"""The pieces of tokens to the text of an answer: whole UTF-8 only, nothing of a stop string.

The rules are those of llama-server b11192's `process_token`. One thing differs, on purpose: a stop string is found
wherever it is in the text not yet released; llama-server misses one that ends before the first byte of a token that
ends in the middle of a character.
"""

import re
from collections.abc import Sequence

from bankml.errors import RequestError


class TextStream:
    """Text released so far never contains a stop string, nor the beginning of one that may still be forming.

    `push` every token's piece and, when generation ends for another reason than a stop string, `finish`. For entries
    per token (logprobs): one is due after each push that leaves `whole` true, with the bytes that this push `released`.

    `chat` says how bytes that are no UTF-8 are shown: as llama-server shows them in a chat (`chat_text`) or as it shows
    them elsewhere, each maximal part of a character as U+FFFD. A chat's answer that is nothing but an unfinished
    character is shown as elsewhere too, unless it is `begun`: has text in front that the conversation brought along.
    """

    def __init__(self, stop_strings: Sequence[str] = (), chat: bool = False, begun: bool = False) -> None:
        if not all(stop_strings):
            raise RequestError("a stop string must not be empty")
        self._stops = [(stop, stop.encode("utf-8", "replace")) for stop in stop_strings]
        self._shown = chat_text if chat else _plain_text
        self._begun = begun
        self._held = bytearray()
        self._released: list[str] = []
        self.stop_word: str | None = None
        """The stop string that ended the text, once one did."""
        self.released = b""
        """The bytes of the text that the last `push` or `finish` returned, as the tokens gave them."""

    @property
    def stopped(self) -> bool:
        return self.stop_word is not None

    @property
    def whole(self) -> bool:
        """Whether what was pushed so far does not end in the middle of a character."""
        return whole_size(self._held) == len(self._held)

    @property
    def text(self) -> str:
        """All the text released so far."""
        self._released = ["".join(self._released)]
        return self._released[0]

    def push(self, piece: bytes) -> str:
        """The text that can be released now that `piece` has come: "" while more has to be seen, or once stopped."""
        self.released = b""
        if self.stopped:
            return ""
        self._held += piece
        if not self.whole:
            return ""
        found = [(at, i) for i, (_, stop) in enumerate(self._stops) if (at := self._held.find(stop)) >= 0]
        if found:
            at, first = min(found)
            self.stop_word = self._stops[first][0]
            del self._held[at:]
        elif any(_may_be_forming(self._held, stop) for _, stop in self._stops):
            return ""
        return self._release(last=self.stopped)

    def finish(self) -> str:
        """What is held when generation ends otherwise: the beginning of a stop string, an incomplete character."""
        return self._release(last=True)

    def _release(self, last: bool = False) -> str:
        self.released = bytes(self._held)
        text = self._shown(self.released)
        if last and not text and not self._begun and not any(self._released):
            text = _plain_text(self.released)
        self._held.clear()
        self._released.append(text)
        return text


# One character by the shape of its bytes, or what is none: a first byte with too few to follow it, a stray one.
_SHAPES = re.compile(
    rb"([\x00-\x7f]+|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3})"
    rb"|[\xe0-\xef][\x80-\xbf]|[\xf0-\xf7][\x80-\xbf]{1,2}|[\x80-\xff]"
)
_UNFINISHED = re.compile(rb"(?:[\xc0-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf7][\x80-\xbf]{0,2})\Z")
_REPLACEMENT = "\ufffd".encode()


def chat_text(data: bytes) -> str:
    """`data` as llama-server shows it in a chat: an unfinished character at its end is left out, and each sequence that
    is none by its shape is one U+FFFD. What has the shape of a character but is none is shown as elsewhere."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        finished = _UNFINISHED.sub(b"", data)
        return _plain_text(_SHAPES.sub(lambda found: found[1] or _REPLACEMENT, finished))


def _plain_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def whole_size(data: bytes | bytearray) -> int:
    """The length of `data` without a multi-byte character that is cut off at its end."""
    for back in range(1, min(len(data), 3) + 1):
        byte = data[-back]
        length = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        if length > back:
            return len(data) - back
    return len(data)


def _may_be_forming(data: bytearray, stop: bytes) -> bool:
    """Whether `data` ends with a beginning of `stop`."""
    return any(data.endswith(stop[:size]) for size in range(min(len(data), len(stop)), 0, -1))
