"""A prompt as the beginning of its answer's text (`echo`), with what is reported of its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from bankml.engine.completion import TokenReport
from bankml.library.resident import Tokens
from bankml.sampling.logprobs import TokenProbs
from bankml.text.pieces import whole_size


@dataclass(frozen=True)
class Echo:
    """The prompt's text, control tokens spelled out, and its tokens' reports: none where none were asked for."""

    text: str
    reports: tuple[TokenReport, ...] = ()


def echo_of(prompt: Sequence[int], tokens: Tokens, scores: Sequence[TokenProbs]) -> Echo:
    """The texts of the reports, joined, are the text: a character of several tokens belongs to the last of them."""
    pieces: list[bytes] = []
    unfinished = b""
    for token in prompt:
        unfinished += tokens.spelling(token)
        size = whole_size(unfinished)
        pieces.append(unfinished[:size])
        unfinished = unfinished[size:]
    pieces[-1] += unfinished
    text = "".join(piece.decode("utf-8", "replace") for piece in pieces)
    return Echo(text, tuple(TokenReport(probs, piece) for probs, piece in zip(scores, pieces, strict=False)))
