"""The description of a template's answers: how they are parsed, and the grammar that constrains them."""

from dataclasses import dataclass
from typing import Literal

from bankml.answers.peg.nodes import Arena
from bankml.text.special_content import Segment

Mapping = Literal["native", "gemma4", "minimax"]
"""How the tags of an answer become a message."""


@dataclass(frozen=True)
class Trigger:
    """What awakens a lazy grammar: a `word`, or a regular expression, of which the last group that matched is where the
    grammar begins (the whole match without one)."""

    kind: Literal["word", "pattern"]
    value: str


@dataclass(frozen=True)
class AnswerFormat:
    """`prompt` is what the model continues, `opening` its end that belongs to the answer as it is parsed: what the
    template writes to ask for an answer, and the beginning of a continued one.

    `grammar` is GBNF, "" for none; `lazy`: it begins at one of `triggers`; otherwise it takes `opening` first.
    `preserved` are control tokens that have a text in the answer, `stops` strings that end it. `thinking_start` and
    `thinking_ends` stand around a thought, "" and () in templates of models that do not reason.
    `segments` are the prompt's parts where texts of control tokens are to stand for themselves in some of them.
    """

    prompt: str
    opening: str
    arena: Arena
    grammar: str = ""
    lazy: bool = False
    triggers: tuple[Trigger, ...] = ()
    preserved: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    thinks: bool = False
    thinking_start: str = ""
    thinking_ends: tuple[str, ...] = ()
    mapping: Mapping = "native"
    continues: bool = False
    segments: tuple[Segment, ...] = ()
