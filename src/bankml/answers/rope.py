"""Text put together of pieces that are never changed, and values rendered as they grow."""

import json
from collections.abc import Callable
from typing import NamedTuple

WORD_VALUES = {"T": ("True", "true"), "F": ("False", "false"), "N": ("None", "null")}


class Rendering:
    """What `render` makes of `text[begin:end]`, extended as `end` grows."""

    __slots__ = ("_chunks", "_end", "_lengths", "_render", "_transform", "begin")

    def __init__(self, begin: int, transform: "Callable[[], Callable[[str], str]]") -> None:
        self.begin = begin
        self._transform = transform
        self._reset()

    def _reset(self) -> None:
        self._render = self._transform()
        self._end = self.begin
        self._chunks: list[str] = []
        self._lengths: list[int] = [0]

    def length(self, text: str, end: int) -> int:
        """The length of what `text[begin:end]` becomes."""
        if end < self._end:
            self._reset()
        if end > self._end:
            self._chunks.append(self._render(text[self._end : end]))
            self._lengths.append(self._lengths[-1] + len(self._chunks[-1]))
            self._end = end
        return self._lengths[-1]

    def tail(self, size: int) -> str:
        """The last `size` characters."""
        if not size:
            return ""
        out: list[str] = []
        for chunk in reversed(self._chunks):
            out.append(chunk)
            size -= len(chunk)
            if size <= 0:
                break
        whole = "".join(reversed(out))
        return whole[-size:] if size < 0 else whole


class TextRope(NamedTuple):
    """`piece` behind `before`: a text, the bounds of one in the answer, or a rendering of `size` characters."""

    before: "TextRope | None"
    length: int
    size: int
    piece: str | tuple[int, int] | Rendering


def appended(rope: TextRope | None, piece: str) -> TextRope | None:
    if not piece:
        return rope
    return TextRope(rope, length_of(rope) + len(piece), len(piece), piece)


def appended_span(rope: TextRope | None, begin: int, end: int) -> TextRope | None:
    """`rope` and the answer's text from `begin` to `end`."""
    if begin == end:
        return rope
    return TextRope(rope, length_of(rope) + end - begin, end - begin, (begin, end))


def appended_rendering(rope: TextRope | None, rendering: Rendering, size: int) -> TextRope | None:
    return TextRope(rope, length_of(rope) + size, size, rendering) if size else rope


def length_of(rope: TextRope | None) -> int:
    return rope.length if rope is not None else 0


def tail_of(rope: TextRope | None, text: str, size: int) -> str:
    """The last `size` characters; `text` is the answer's."""
    out: list[str] = []
    while size > 0 and rope is not None:
        wanted = min(size, rope.size)
        piece = rope.piece
        if isinstance(piece, str):
            out.append(piece[len(piece) - wanted :])
        elif isinstance(piece, tuple):
            out.append(text[piece[1] - wanted : piece[1]])
        else:
            out.append(piece.tail(wanted))
        size -= wanted
        rope = rope.before
    return "".join(reversed(out))


def text_of(rope: TextRope | None, text: str) -> str:
    return tail_of(rope, text, length_of(rope))


def escaping() -> Callable[[str], str]:
    """Text as the inside of a JSON string."""
    return escaped


def escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def normalizing() -> Callable[[str], str]:
    """Values as Python writes them to JSON: quotes, True, False and None."""
    return _Normalizer()


class _Normalizer:
    """Text by text; a word or an escape sequence may continue in the next."""

    def __init__(self) -> None:
        self._quote = ""
        self._escape = False
        self._word: tuple[str, str, int] | None = None
        self._after_word_character = False

    def __call__(self, text: str) -> str:
        out: list[str] = []
        at = 0
        if self._word is not None:
            at = self._continue_word(text, out)
        while at < len(text):
            character = text[at]
            if self._escape:
                out.append(self._escaped(character))
                at += 1
            elif character == "\\" and self._quote:
                self._escape = True
                at += 1
            elif not self._quote and character in WORD_VALUES and not self._after_word_character:
                at = self._begin_word(text, at, out)
            else:
                out.append(self._plain(character))
                at += 1
        return "".join(out)

    def _escaped(self, character: str) -> str:
        self._escape = False
        if self._quote == "'" and character == "'":
            return "'"
        return "\\" + character

    def _plain(self, character: str) -> str:
        self._after_word_character = _in_word(character)
        if character == '"':
            if self._quote == "'":
                return '\\"'
            self._quote = "" if self._quote else '"'
        elif character == "'" and self._quote != '"':
            self._quote = "" if self._quote else "'"
            return '"'
        return character

    def _begin_word(self, text: str, at: int, out: list[str]) -> int:
        python, javascript = WORD_VALUES[text[at]]
        end = at
        while end < len(text) and _in_word(text[end]):
            end += 1
        word = text[at:end]
        self._after_word_character = True
        if not python.startswith(word):
            out.append(text[at])
            return at + 1
        out.append(javascript[: len(word)])
        if end == len(text):
            self._word = (python, javascript, len(word))
        return end

    def _continue_word(self, text: str, out: list[str]) -> int:
        assert self._word is not None
        python, javascript, count = self._word
        at = 0
        while at < len(text) and count < len(python) and text[at] == python[count]:
            at, count = at + 1, count + 1
        out.append(javascript[self._word[2] : count])
        self._word = (python, javascript, count) if at == len(text) else None
        return at


def _in_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())
