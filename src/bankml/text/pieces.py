"""Token pieces to the text of an answer: complete UTF-8 only, without stop strings.

The rules are those of llama-server b11192's `process_token`, with one intended difference: a stop string is found
anywhere in the text not yet released; llama-server misses one that ends before the first byte of a token that ends in
the middle of a character.
"""

import re
from collections.abc import Sequence

from bankml.errors import RequestError


class TextStream:
    """The released text never contains a stop string, nor the beginning of one that may still be forming.

    `push` every token's piece and, when generation ends for another reason than a stop string, `finish`. For entries
    per token (logprobs): one is due after each push that leaves `at_boundary` true, with the bytes that it `released`.

    `chat` selects how invalid UTF-8 is shown: as llama-server shows it in a chat (`chat_text`), or as elsewhere, each
    maximal part of a character as U+FFFD. A chat's answer that is nothing but an incomplete character is shown as
    elsewhere too, unless it is `begun`, that is, has a prefill.
    """

    def __init__(self, stop_strings: Sequence[str] = (), chat: bool = False, begun: bool = False) -> None:
        if not all(stop_strings):
            raise RequestError("a stop string must not be empty")
        self._stops = [(stop, stop.encode("utf-8", "replace")) for stop in stop_strings]
        self._shown = chat_text if chat else _plain_text
        self._begun = begun
        self._pending = bytearray()
        self._released: list[str] = []
        self.stop_word: str | None = None
        """The stop string that ended the text, if one did."""
        self.released = b""
        """The bytes of the text that the last `push` or `finish` returned, before invalid UTF-8 was replaced."""

    @property
    def stopped(self) -> bool:
        return self.stop_word is not None

    @property
    def at_boundary(self) -> bool:
        """True if the bytes pushed so far do not end in the middle of a character."""
        return whole_size(self._pending) == len(self._pending)

    @property
    def text(self) -> str:
        """All released text."""
        self._released = ["".join(self._released)]
        return self._released[0]

    def push(self, piece: bytes) -> str:
        """The text that can be released after `piece`: "" while a decision needs more, or once stopped."""
        self.released = b""
        if self.stopped:
            return ""
        self._pending += piece
        if not self.at_boundary:
            return ""
        found = [(at, i) for i, (_, stop) in enumerate(self._stops) if (at := self._pending.find(stop)) >= 0]
        if found:
            at, first = min(found)
            self.stop_word = self._stops[first][0]
            del self._pending[at:]
        elif any(_may_be_forming(self._pending, stop) for _, stop in self._stops):
            return ""
        return self._release(last=self.stopped)

    def finish(self) -> str:
        """The withheld text when generation ends otherwise: the beginning of a stop string, an incomplete character."""
        return self._release(last=True)

    def _release(self, last: bool = False) -> str:
        self.released = bytes(self._pending)
        text = self._shown(self.released)
        if last and not text and not self._begun and not any(self._released):
            text = _plain_text(self.released)
        self._pending.clear()
        self._released.append(text)
        return text


# A sequence with the form of a character, or an invalid one: a first byte with too few continuations, a stray byte.
_SHAPES = re.compile(
    rb"([\x00-\x7f]+|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3})"
    rb"|[\xe0-\xef][\x80-\xbf]|[\xf0-\xf7][\x80-\xbf]{1,2}|[\x80-\xff]"
)
_UNFINISHED = re.compile(rb"(?:[\xc0-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf7][\x80-\xbf]{0,2})\Z")
_REPLACEMENT = "\ufffd".encode()


def chat_text(data: bytes) -> str:
    """`data` as llama-server shows it in a chat: an incomplete character at its end is omitted, and each sequence
    without the form of a character is one U+FFFD. An invalid code point of valid form is shown as elsewhere."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        finished = _UNFINISHED.sub(b"", data)
        return _plain_text(_SHAPES.sub(lambda found: found[1] or _REPLACEMENT, finished))


def _plain_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def whole_size(data: bytes | bytearray) -> int:
    """The length of `data` without an incomplete multi-byte character at its end."""
    for back in range(1, min(len(data), 3) + 1):
        byte = data[-back]
        length = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        if length > back:
            return len(data) - back
    return len(data)


def _may_be_forming(data: bytearray, stop: bytes) -> bool:
    """Whether `data` ends with a prefix of `stop`."""
    return any(data.endswith(stop[:size]) for size in range(min(len(data), len(stop)), 0, -1))
