"""bankML's chain for a Case, whose DRY breakers are given as tokens."""

from bankml import _native
from bankml.sampling.chain import SamplerChain
from bankml.sampling.vocabulary import SamplerVocabulary
from tests.sampling.cases import Case


class TokenBreakers(SamplerVocabulary):
    """A vocabulary without texts."""

    def __init__(self, n_vocab: int, sequences: tuple[tuple[int, ...], ...]) -> None:
        super().__init__(n_vocab, lambda text: [], lambda: [])
        self._sequences = sequences

    def breakers(self, strings: tuple[str, ...]) -> _native.Breakers:
        found = _native.Breakers()
        for first, *rest in self._sequences:
            found.add_sequence(first, rest)
        return found


def sampler(case: Case, n_vocab: int) -> SamplerChain:
    made = SamplerChain(case.params, TokenBreakers(n_vocab, case.breakers))
    made.accept_all(case.history)
    return made
