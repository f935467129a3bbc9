"""How an answer ended, in llama-server's words, and what follows from it."""

from typing import Literal

from bankml.engine.completion import Step
from bankml.engine.parts import TextPieces
from bankml.library.resident import Tokens

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
