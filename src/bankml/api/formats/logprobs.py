"""The tokens' probabilities as llama-server writes them, and their bytes for the receipt.

An array of entries is written once: as one array in a whole answer, or an entry to a chunk in a streamed one. Either
way its bytes are those of the entries, joined by ", ", inside [ ].
"""

from collections.abc import Callable, Sequence

from bankml.engine.completion import TokenReport
from bankml.http.json_out import json_bytes
from bankml.receipt.receipt import Tally
from bankml.text.pieces import whole_size

Json = dict[str, object]


class Logprobs:
    """Writes the entries of one answer and gives `tally` every byte of them.

    `piece` gives the bytes a token adds to a text, none for a control token. `shaped` makes another API's entry of
    llama-server's; `alternatives` limits how many an entry lists.
    """

    def __init__(
        self,
        piece: Callable[[int], bytes],
        tally: Tally,
        shaped: Callable[[Json], Json] = lambda entry: entry,
        alternatives: int | None = None,
    ) -> None:
        self._piece = piece
        self._tally = tally
        self._shaped = shaped
        self._alternatives = alternatives

    def array(self, entries: Sequence[TokenReport]) -> list[Json]:
        """`entries` as JSON, to be sent: their bytes count from here on."""
        array = [self._shaped(self._entry(entry)) for entry in entries]
        for one in array:
            self._tally.logprobs(json_bytes(one))
        return array

    def _entry(self, entry: TokenReport) -> Json:
        probs = entry.probs
        value, top = ("logprob", "top_logprobs") if probs.logarithmic else ("prob", "top_probs")
        tops = [_token(token, self._piece(token), value, number) for token, number in probs.top[: self._alternatives]]
        return _token(probs.token, entry.released, value, probs.value) | {top: tops}


def _token(token: int, data: bytes, name: str, number: float | None) -> Json:
    """The text is `data` without a character that is cut off at its end, with U+FFFD for what else is not UTF-8."""
    text = data[: whole_size(data)].decode("utf-8", "replace")
    return {"id": token, "token": text, "bytes": list(data), name: number}


def without_stop_word(entries: Sequence[TokenReport], n_tokens: int) -> Sequence[TokenReport]:
    """The entries of an answer that a stop string ended, less one for each of the string's own tokens."""
    return entries[: max(0, len(entries) - n_tokens)]
