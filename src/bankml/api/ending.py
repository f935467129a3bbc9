"""How an answer ended, in llama-server's words, and what follows from it."""

from collections.abc import Mapping
from typing import Literal

from bankml.engine.completion import Step
from bankml.engine.parts import TextPieces
from bankml.library.resident import Tokens
from bankml.receipt.receipt import Tally

StopType = Literal["eos", "word", "limit"]


def stop_type(last: Step, tokens: Tokens) -> StopType:
    """An end-of-generation token, a stop string, or the token limit or the end of the context."""
    if last.finish == "length":
        return "limit"
    return "eos" if tokens.is_end_of_generation(last.token) else "word"


def stop_word_tokens(last: Step, pieces: TextPieces, tokens: Tokens) -> int:
    """How many tokens the stop string that ended the answer has by itself; 0 when something else ended it."""
    if pieces.stop_word is None or stop_type(last, tokens) != "word":
        return 0
    return len(tokens.encode(pieces.stop_word, parse_special=False))


def receipt(tally: Tally, last: Step) -> Mapping[str, object]:
    """The receipt of an answer of which everything has been written."""
    return tally.receipt(last.progress.prompt_tokens, last.progress.completion_tokens)
