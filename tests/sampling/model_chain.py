"""The chain once more, in plain Python over numpy's float32, written from what each sampler is defined to do.

Nothing is done early, skipped or kept dense here: a list of all candidates goes through every sampler. Of the compiled
code only the Mersenne twister and the C library's expf, logf, log2f and powf are used.
"""

import ctypes
import ctypes.util
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from bankml import _native
from bankml.sampling.parameters import SamplingParams
from tests.sampling import libstdcxx
from tests.sampling.cases import Case

F = np.float32
D = np.float64
INF = F(np.inf)

_libm = ctypes.CDLL(ctypes.util.find_library("m"))


def _c(name: str, n: int) -> Any:
    function = getattr(_libm, name)
    function.argtypes = [ctypes.c_float] * n
    function.restype = ctypes.c_float
    return lambda *x: F(function(*(float(one) for one in x)))


expf, logf, log2f, powf = _c("expf", 1), _c("logf", 1), _c("log2f", 1), _c("powf", 2)


@dataclass
class Token:
    id: int
    logit: np.float32
    p: np.float32 = INF  # until a sampler sets it


def higher(a: Token, b: Token) -> bool:
    return bool(a.logit > b.logit)


class ModelChain:
    def __init__(self, case: Case, n_vocab: int) -> None:
        self.p: SamplingParams = case.params
        self.n_vocab = n_vocab
        self.breakers = case.breakers
        self.history: list[int] = []
        seed = self.p.seed
        # One generator for each place that draws: each XTC in the order of samplers, and the one that chooses.
        self.xtc_generators = [_native.Mt19937(seed) for name in self.p.samplers if name == "xtc"]
        self.generator = _native.Mt19937(seed)
        self.mu = F(2) * F(self.p.mirostat_tau)
        decay = min(max(F(self.p.adaptive_decay), F(0)), F(0.99))
        self.decay = decay
        self.weighted_sum = F(self.p.adaptive_target) / (F(1) - decay)
        self.total_weight = F(1) / (F(1) - decay)
        self.pending: tuple[int, np.float32] | None = None
        for token in case.history:
            self.accept(token)

    def accept(self, token: int) -> None:
        self.history.append(token)
        if self.pending and self.pending[0] == token:
            self.weighted_sum = self.pending[1] + self.decay * self.weighted_sum
            self.total_weight = F(1) + self.decay * self.total_weight
        self.pending = None

    def sample(self, logits: np.ndarray) -> int:
        with np.errstate(all="ignore"):
            return self._sample(logits)

    def _sample(self, logits: np.ndarray) -> int:
        self.tokens = [Token(i, F(logit)) for i, logit in enumerate(logits)]
        self.sorted = False
        for token, bias in self.p.logit_bias:
            self.tokens[token].logit += F(bias)
        if self.p.mirostat:
            self.temperature(F(self.p.temperature))
            return self.mirostat() if self.p.mirostat == 1 else self.mirostat_v2()
        xtc = iter(self.xtc_generators)
        for name in self.p.samplers:
            if name == "xtc":
                self.xtc(next(xtc))
            elif name == "temperature":
                self.any_temperature()
            elif name != "adaptive_p":
                getattr(self, name)()
        return self.adaptive_p() if "adaptive_p" in self.p.samplers else self.dist()

    # ---- orders and probabilities

    def sort_top(self, k: int) -> None:
        self.tokens = self.top(k)[:k]
        self.sorted = True

    def top(self, k: int, few: int = 128) -> list[Token]:
        """Up to 128 by a heap; more by a counting sort into 128 buckets over -10 .. 10, each then sorted."""
        if k <= few:
            heap = list(self.tokens)
            libstdcxx.partial_sort(heap, k, higher)
            return heap[:k]
        buckets: list[list[Token]] = [[] for _ in range(128)]
        for token in self.tokens:
            place = F(6.4) * token.logit + F(64)
            inside = np.isfinite(place) and -(2**31) < place < 2**31
            buckets[max(0, min(127, int(place) if inside else 0))].append(token)
        result: list[Token] = []
        for bucket in reversed(buckets):
            if len(result) + len(bucket) >= k:
                libstdcxx.partial_sort(bucket, k - len(result), higher)
                return result + bucket
            libstdcxx.sort(bucket, higher)
            result += bucket
        return result

    def softmax(self, in_order: bool) -> None:
        if in_order and not self.sorted:
            self.sort_top(len(self.tokens))
        highest = max(token.logit for token in self.tokens)
        total = F(0)
        for token in self.tokens:
            token.p = expf(token.logit - highest)
            total += token.p
        for token in self.tokens:
            token.p /= total

    # ---- what changes logits

    def penalties(self) -> None:
        p = self.p
        if p.repeat_last_n <= 0 or (p.repeat_penalty, p.frequency_penalty, p.presence_penalty) == (1, 0, 0):
            return
        counts = Counter(self.history[-p.repeat_last_n :])
        for token in self.tokens:
            if count := counts[token.id]:
                repeat = F(p.repeat_penalty)
                token.logit = token.logit * repeat if token.logit <= 0 else token.logit / repeat
                token.logit -= F(count) * F(p.frequency_penalty) + F(p.presence_penalty)
        self.sorted = False

    def dry(self) -> None:
        p = self.p
        if p.dry_multiplier == 0 or p.dry_base < 1 or p.dry_penalty_last_n <= 0:
            return
        text = self.history[-p.dry_penalty_last_n :]
        limit = self.since_breaker(text)
        if len(text) <= p.dry_allowed_length or limit < p.dry_allowed_length:
            return
        longest: dict[int, int] = {}
        for next_at in range(1, len(text)):
            same = 0
            while same < next_at and text[next_at - 1 - same] == text[-1 - same]:
                same += 1
            same = min(same, limit)
            if same >= p.dry_allowed_length:
                longest[text[next_at]] = max(longest.get(text[next_at], 0), same)
        single = {first for first, *rest in self.breakers if not rest}
        for token in self.tokens:
            if token.id in longest and token.id not in single:
                exponent = longest[token.id] - p.dry_allowed_length
                if p.dry_base > F(1.000001):
                    exponent = min(exponent, int(F(88.7228391) / logf(p.dry_base)))
                token.logit -= F(D(p.dry_multiplier) * D(p.dry_base) ** D(exponent))
        self.sorted = False

    def since_breaker(self, text: list[int]) -> int:
        """How many tokens come after the last breaker; of those beginning at one token the longest counts."""
        for start in range(len(text) - 1, -1, -1):
            ends = [start + len(b) for b in self.breakers if tuple(text[start : start + len(b)]) == b]
            if ends:
                return len(text) - max(ends)
        return len(text)

    # ---- what drops candidates

    def top_n_sigma(self) -> None:
        if self.p.top_n_sigma <= 0 or len(self.tokens) <= 1:
            return
        counted = [token.logit for token in self.tokens if token.logit != -INF]
        total, squares = F(0), F(0)
        for logit in counted:
            total += logit
        mean = total / F(len(counted)) if counted else F(0)
        for logit in counted:
            squares = F(D(squares) + D(logit - mean) ** 2)
        sigma = np.sqrt(squares / F(len(counted))) if counted else F(0)
        lowest = max(counted, default=-INF) - F(self.p.top_n_sigma) * sigma
        for token in self.tokens:
            if token.logit < lowest:
                token.logit = -INF

    def top_k(self) -> None:
        if self.p.top_k > 0:
            k = min(self.p.top_k, len(self.tokens))
            if self.sorted:
                self.tokens = self.tokens[:k]
            else:
                self.sort_top(k)

    def typ_p(self) -> None:
        if self.p.typical_p >= 1:
            return
        self.softmax(True)
        entropy = F(0)
        for token in self.tokens:
            entropy += -token.p * logf(token.p)
        distance = {token.id: abs(-logf(token.p) - entropy) for token in self.tokens}
        libstdcxx.sort(self.tokens, lambda a, b: bool(distance[a.id] < distance[b.id]))
        self.keep_mass(lambda mass: mass > F(self.p.typical_p))
        self.sorted = False

    def keep_mass(self, enough: Any) -> None:
        mass = F(0)
        for i, token in enumerate(self.tokens):
            mass += token.p
            if enough(mass) and i + 1 >= self.p.min_keep:
                self.tokens = self.tokens[: i + 1]
                return

    def top_p(self) -> None:
        if self.p.top_p >= 1:
            return
        self.softmax(False)
        # A long list is sorted 256 at a time first, but in buckets however short what is asked for.
        wide = not self.sorted and len(self.tokens) > 1024
        first, mass, kept = (256 if wide else 0), F(0), None
        if wide:
            for i, token in enumerate(self.top(first, few=0)[:first]):
                mass += token.p
                if mass >= F(self.p.top_p) and i + 1 >= self.p.min_keep:
                    kept = self.top(first, few=0)[: i + 1]
                    break
        if kept is not None:
            self.tokens = kept
            self.sorted = True
            return
        if not self.sorted:
            self.sort_top(len(self.tokens))
        for i, token in enumerate(self.tokens[first:], first):
            mass += token.p
            if mass >= F(self.p.top_p) and i + 1 >= self.p.min_keep:
                self.tokens = self.tokens[: i + 1]
                return

    def min_p(self) -> None:
        if self.p.min_p <= 0:
            return
        lowest = max(token.logit for token in self.tokens) + logf(self.p.min_p)
        likely = [token for token in self.tokens if token.logit >= lowest]
        if not self.sorted and (len(likely) < self.p.min_keep or lowest == -INF):
            self.sort_top(len(self.tokens))
            likely = [token for token in self.tokens if token.logit >= lowest]
        if self.sorted:
            likely = self.tokens[: max(len(likely), self.p.min_keep, 1)]
        self.tokens = likely

    def xtc(self, generator: Any) -> None:
        p = self.p
        if p.xtc_probability <= 0 or p.xtc_threshold > 0.5 or len(self.tokens) < 2:
            return
        if F(generator.unit_float()) > F(p.xtc_probability):
            return
        self.softmax(True)
        likely = 0
        while likely < len(self.tokens) and self.tokens[likely].p >= F(p.xtc_threshold):
            likely += 1
        if likely >= 2 and len(self.tokens) - likely + 1 >= p.min_keep:
            self.tokens = self.tokens[likely - 1 :]

    # ---- temperature

    def temperature(self, temperature: np.float32) -> None:
        if temperature > 0:
            for token in self.tokens:
                token.logit /= temperature
        else:
            best = max(self.tokens, key=lambda token: token.logit)
            for token in self.tokens:
                if token is not best:
                    token.logit = -INF

    def any_temperature(self) -> None:
        p = self.p
        if p.dynatemp_range <= 0:
            self.temperature(F(p.temperature))
            return
        if len(self.tokens) <= 1:
            return
        self.softmax(True)
        entropy = F(0)
        for token in self.tokens:
            if token.p > 0:
                entropy -= token.p * logf(token.p)
        share = entropy / -logf(F(1) / F(len(self.tokens)))
        lowest = max(F(0), F(p.temperature) - F(p.dynatemp_range))
        highest = F(p.temperature) + F(p.dynatemp_range)
        self.temperature(lowest + (highest - lowest) * powf(share, p.dynatemp_exponent))

    # ---- what chooses

    def dist(self) -> int:
        drawn = self.generator.unit_double()
        if len(self.tokens) == 1:
            return self.tokens[0].id
        highest = max(token.logit for token in self.tokens)
        total = D(0)
        for token in self.tokens:
            token.p = expf(token.logit - highest)
            total += D(token.p)
        so_far = D(0)
        for token in self.tokens:
            so_far += D(token.p)
            if so_far >= total * D(drawn):
                return token.id
        return self.tokens[-1].id

    def by_probability(self) -> int:
        return self.generator.discrete([float(token.p) for token in self.tokens])

    def surprise_chosen(self) -> int:
        self.softmax(True)
        chosen = self.tokens[self.by_probability()]
        self.mu = self.mu - F(self.p.mirostat_eta) * (-log2f(chosen.p) - F(self.p.mirostat_tau))
        return chosen.id

    def mirostat(self) -> int:
        self.softmax(True)
        products, squares = F(0), F(0)
        for i in range(min(99, len(self.tokens) - 1)):
            t = logf(F(i + 2) / F(i + 1))
            products += t * logf(self.tokens[i].p / self.tokens[i + 1].p)
            squares += t * t
        s = products / squares
        epsilon = s - F(1)
        k = powf((epsilon * powf(2, self.mu)) / (F(1) - powf(self.n_vocab, -epsilon)), F(1) / s)
        inside = np.isfinite(k) and k < 2**31
        self.tokens = self.tokens[: max(int(k), 1) if inside else 1]
        return self.surprise_chosen()

    def mirostat_v2(self) -> int:
        self.softmax(True)
        kept = []
        for token in self.tokens:
            if -log2f(token.p) > self.mu:
                break
            kept.append(token)
        self.tokens = kept or self.tokens[:1]
        return self.surprise_chosen()

    def adaptive_p(self) -> int:
        self.softmax(False)
        if self.p.adaptive_target < 0:
            return self.tokens[self.by_probability()].id
        target = min(max(F(self.p.adaptive_target), F(0)), F(1))
        target = min(max(F(2) * target - self.weighted_sum / self.total_weight, F(0)), F(1))
        before = [token.p for token in self.tokens]
        for token in self.tokens:
            if token.logit != -INF:
                distance = abs((token.p - target) * (F(1) / F(0.3)))
                token.logit = F(5) - F(10) * distance * distance / (F(1) + distance)
        self.softmax(False)
        at = self.by_probability()
        self.pending = (self.tokens[at].id, before[at])
        return self.tokens[at].id
