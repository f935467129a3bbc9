"""What sampling needs of the tokenizer, which is on a higher floor."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from bankml import _native

LONGEST_BREAKER = 40  # bytes; a longer one is cut, as llama.cpp cuts it
LONGEST_TAIL = 20  # tokens


class SamplerVocabulary:
    """One model's vocabulary for sampling, made once for all its requests.

    `tokenize(text)` gives token ids with control tokens' texts read as plain text; `texts()` gives the bytes of every
    token, special ones included, and is called at the first request that uses DRY; `end_of_generation` are the ids
    that `ignore_eos` bans.
    """

    def __init__(
        self,
        n_vocab: int,
        tokenize: Callable[[str], Sequence[int]],
        texts: Callable[[], Sequence[bytes]],
        end_of_generation: Sequence[int] = (),
    ) -> None:
        self.n_vocab = n_vocab
        self.tokenize = tokenize
        self.end_of_generation = tuple(end_of_generation)
        token_texts = lru_cache(maxsize=1)(lambda: _native.TokenTexts(list(texts())))
        # No reference back to the vocabulary itself, so that it is freed with the model, not by a later collection.
        self._breakers = lru_cache(maxsize=8)(lambda strings: _find_breakers(strings, tokenize, token_texts))

    def breakers(self, strings: tuple[str, ...]) -> _native.Breakers:
        """The token sequences in which any of `strings` begins: what ends a repetition for DRY.

        A token that contains the entire string is a sequence by itself; a token that ends with the string's first bytes
        is one when the tokens of the rest follow it. Empty strings are ignored.
        """
        return self._breakers(strings)


def _find_breakers(
    strings: tuple[str, ...], tokenize: Callable[[str], Sequence[int]], token_texts: Callable[[], _native.TokenTexts]
) -> _native.Breakers:
    found = _native.Breakers()
    for string in strings:
        breaker = string.encode("utf-8", "surrogatepass")[:LONGEST_BREAKER]
        if breaker:
            rests = (decode_bytewise(breaker[n:]) for n in range(1, len(breaker)))
            found.add(token_texts(), breaker, [list(tokenize(rest))[:LONGEST_TAIL] for rest in rests])
    return found


def decode_bytewise(data: bytes) -> str:
    """UTF-8 with U+FFFD for each byte that belongs to no complete character, as llama.cpp reads text cut anywhere."""
    text = ""
    while data:
        try:
            return text + data.decode()
        except UnicodeDecodeError as error:
            text += data[: error.start].decode() + "\N{REPLACEMENT CHARACTER}"
            data = data[error.start + 1 :]
    return text
