"""Types of the compiled module, room by room. tests/model/test_stub.py holds it equal to the module.

Arrays are C-contiguous. An array of another dtype or number of dimensions is a TypeError, extents that do not fit a
ValueError; nothing is converted. In shapes, n counts the tokens of a micro-batch.
"""

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

# ---- model

F32 = NDArray[np.float32]

def kernel_sets() -> list[str]: ...  # the instruction sets that this build has and this processor runs, slowest first
def kernel_set() -> str: ...  # the one in use
def use_kernels(name: str) -> bool: ...  # False: there is no such set here

class WeightFormat:
    """A weight type that products are computed with."""

    @property
    def id(self) -> int: ...  # ggml's number
    @property
    def name(self) -> str: ...
    @property
    def block_weights(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def arranged(self) -> bool: ...  # whether products read rows in another order than the file's
    @property
    def activation(self) -> str: ...  # what activations are converted to
    @property
    def row_multiple(self) -> int: ...  # a row has a multiple of so many weights

def weight_formats() -> list[WeightFormat]: ...  # in the order of their numbers

# data: matrices of `rows` rows one behind the other, put from the file's order into the one that products read
def arrange(type: int, columns: int, rows: int, data: NDArray[np.uint8]) -> None: ...
def dequantize(type: int, data: NDArray[np.uint8], y: F32) -> None: ...  # whole blocks to y [n]

class CacheFormat:
    """A type that keys and values are kept in."""

    @property
    def name(self) -> str: ...
    @property
    def block_values(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def item_bytes(self) -> int: ...  # of an element of its arrays

def cache_formats() -> list[CacheFormat]: ...

class Pool:
    """A thread pool; OSError where the system starts no more threads."""

    def __init__(self, threads: int) -> None: ...
    @property
    def threads(self) -> int: ...

class Projection:
    """Matrices below each other that meet the same activations; parts: (type number, bytes, rows) of each; bias b
    [all rows]."""

    def __init__(
        self, pool: Pool, columns: int, parts: list[tuple[int, NDArray[np.uint8], int]], bias: F32 | None = None
    ) -> None: ...
    # x [n, columns], y [n, all rows]. span: the rows of x that one sequence has in its micro-batch (None: all n); the
    # bits depend on it alone.
    def apply(self, x: F32, y: F32, span: int | None = None) -> None: ...  # y = W x + b
    def add_to(
        self, x: F32, y: F32, span: int | None = None, factor: float = 1.0
    ) -> None: ...  # y += factor * (W x + b)

class Experts:
    """A mixture of `count` experts, of which a row uses `used`; gate, up, down: (type number, bytes of all experts,
    rows of one)."""

    def __init__(
        self,
        pool: Pool,
        count: int,
        used: int,
        columns: int,
        gate: tuple[int, NDArray[np.uint8], int],
        up: tuple[int, NDArray[np.uint8], int],
        down: tuple[int, NDArray[np.uint8], int],
    ) -> None: ...
    # y [n, columns] += outputs of x; logits [n, count]; span as for Projection
    def add_to(self, logits: F32, x: F32, y: F32, span: int | None = None) -> None: ...

class Embedding:
    """Rows of weights as float32; data: the bytes of all rows."""

    def __init__(self, type: int, columns: int, data: NDArray[np.uint8]) -> None: ...
    def look_up(self, tokens: NDArray[np.int32], y: F32) -> None: ...  # tokens [n], y [n, columns]

class RopeShape:
    @property
    def rotated(self) -> int: ...  # values of a head that are rotated

class AttentionShape:
    # cells: of the K/V cache; llama_threads: the -t of the llama-server whose split of long contexts is computed
    def __init__(
        self,
        heads: int,
        kv_heads: int,
        head_size: int,
        scale: float,
        cells: int,
        llama_threads: int,
        softcap: float = 0.0,
        window: int = 0,
    ) -> None: ...  # softcap of the scores, 0: none; window: positions that a row sees, 0: all

def rms_norm(pool: Pool, x: F32, weight: F32, eps: float, y: F32) -> None: ...  # x, y [n, width], weight [width]
def rms_norm_heads(
    pool: Pool, x: F32, weight: F32, eps: float, first: int, heads: int
) -> None: ...  # in place: `heads` heads of weight's width from column `first` on
def layer_norm(
    pool: Pool, x: F32, weight: F32, bias: F32, eps: float, y: F32
) -> None: ...  # x, y [n, width], weight, bias [width]; y may be x
def gelu(pool: Pool, x: F32) -> None: ...  # in place
def add(x: F32, y: F32) -> None: ...  # y += x, of the same shape
def swiglu(pool: Pool, gate_up: F32, y: F32) -> None: ...  # gate_up [n, 2 * width], y [n, width]
def geglu(pool: Pool, gate_up: F32, y: F32) -> None: ...  # the same with GELU
def scale(x: F32, width: int, factor: float) -> None: ...  # in place: the first `width` values of every row
def scale_rows(x: F32, width: int, factors: F32) -> None: ...  # the same by a factor of each row's own, [n]
def softcap(pool: Pool, x: F32, cap: float) -> None: ...  # in place: cap * tanh(x / cap)

# factor divides the positions; factors [rotated / 2] divide the angles, each pair's its own.
def rope_plain(
    rotated: int, base: float, attention_factor: float, factor: float = 1.0, factors: F32 | None = None
) -> RopeShape: ...
def rope_yarn(
    rotated: int,
    base: float,
    factor: float,
    original_context: int,
    attention_factor: float,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    log_multiplier: float = 0.0,
    factors: F32 | None = None,
) -> RopeShape: ...
def rope_table(shape: RopeShape, first: int, table: F32) -> None: ...  # table [n, rotated] of positions first on
def rope_rotate(
    pool: Pool, table: F32, neox: bool, heads: int, head_size: int, x: F32
) -> None: ...  # in place: the first `heads` heads of x [n, at least heads * head_size]

# qkv [n, (heads + 2 * kv_heads) * head_size]; out [n, heads * head_size]. k, v [kv_heads, cells, head_size] of f16, or
# [kv_heads, cells, head_size / 32 * 34] bytes of q8_0. Row i is at position + i, and its cell is that or places[i];
# then positions are those of the cells that are looked at, -1 for an empty one.
@overload
def attend(
    pool: Pool,
    shape: AttentionShape,
    qkv: F32,
    position: int,
    k: NDArray[np.uint16],
    v: NDArray[np.uint16],
    out: F32,
    places: NDArray[np.int32] | None = None,
    positions: NDArray[np.int32] | None = None,
) -> None: ...
@overload
def attend(
    pool: Pool,
    shape: AttentionShape,
    qkv: F32,
    position: int,
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    out: F32,
    places: NDArray[np.int32] | None = None,
    positions: NDArray[np.int32] | None = None,
) -> None: ...
def mean_of_rows(x: F32, y: F32) -> None: ...  # x [n, width], y [width]
def softmax(x: F32) -> None: ...  # in place: x [n]
def normalize(x: F32, norm: int) -> None: ...  # in place: x [n]; -1 none, 0 the largest magnitude, else the p-norm
def hadamard(
    x: F32,
) -> None: ...  # x [n, a power of two >= 8], each row times the Hadamard matrix / sqrt(width), in place
def widen_f16(x: NDArray[np.uint16], y: F32) -> None: ...  # both [n]
def round_f16(x: F32, y: NDArray[np.uint16]) -> None: ...  # both [n]
def quantize_q8(x: F32, q: NDArray[np.int8], d: F32, sum: NDArray[np.int32]) -> None: ...  # x, q [n]; d, sum [n / 32]

# ---- sampling

class Mt19937:
    def __init__(self, seed: int) -> None: ...
    def unit_double(self) -> float: ...
    def unit_float(self) -> float: ...
    def discrete(self, weights: Sequence[float]) -> int: ...

class TokenTexts:
    def __init__(self, texts: list[bytes]) -> None: ...
    def __len__(self) -> int: ...

class Breakers:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add_sequence(self, first: int, rest: list[int]) -> None: ...
    def add(self, texts: TokenTexts, breaker: bytes, rests: list[list[int]]) -> None: ...

class SamplerChain:
    def __init__(self) -> None: ...
    def add_logit_bias(self, biases: list[tuple[int, float]]) -> None: ...
    def add_penalties(self, last_n: int, repeat: float, frequency: float, presence: float) -> None: ...
    def add_dry(self, multiplier: float, base: float, allowed_length: int, last_n: int, breakers: Breakers) -> None: ...
    def add_top_n_sigma(self, n: float) -> None: ...
    def add_top_k(self, k: int) -> None: ...
    def add_typical_p(self, p: float, min_keep: int) -> None: ...
    def add_top_p(self, p: float, min_keep: int) -> None: ...
    def add_min_p(self, p: float, min_keep: int) -> None: ...
    def add_xtc(self, probability: float, threshold: float, min_keep: int, seed: int) -> None: ...
    def add_temperature(self, temperature: float) -> None: ...
    def add_dynamic_temperature(self, temperature: float, range: float, exponent: float) -> None: ...
    def add_dist(self, seed: int) -> None: ...
    def add_mirostat(self, n_vocab: int, seed: int, tau: float, eta: float) -> None: ...
    def add_mirostat_v2(self, seed: int, tau: float, eta: float) -> None: ...
    def add_adaptive_p(self, target: float, decay: float, seed: int) -> None: ...
    def accept(self, token: int) -> None: ...
    def accept_all(self, tokens: list[int]) -> None: ...
    def apply(self, logits: NDArray[np.float32]) -> None: ...
    def sample(self, logits: NDArray[np.float32]) -> int: ...
    def candidates(self) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]: ...
    def probabilities(self, chosen: int, n_top: int) -> tuple[float, NDArray[np.int32], NDArray[np.float32]]: ...

def token_probabilities(
    logits: NDArray[np.float32], chosen: int, n_top: int
) -> tuple[float, NDArray[np.int32], NDArray[np.float32]]: ...
def log_probabilities(probabilities: NDArray[np.float32]) -> NDArray[np.float32]: ...

# ---- grammar

class GrammarProgram:
    def __init__(
        self, kinds: NDArray[np.uint8], values: NDArray[np.uint32], starts: NDArray[np.uint32], root: int
    ) -> None: ...
    @property
    def left_recursive(self) -> int: ...

class GrammarVocabulary:
    def __init__(self, pieces: list[bytes], end_of_generation: list[int]) -> None: ...
    @property
    def n_vocab(self) -> int: ...
    def piece(self, token: int) -> bytes: ...

class GrammarMatcher:
    def __init__(self, program: GrammarProgram, vocabulary: GrammarVocabulary) -> None: ...
    @property
    def complete(self) -> bool: ...
    def allows(self, token: int) -> bool: ...
    def mask(self, logits: NDArray[np.float32], out: NDArray[np.float32]) -> int: ...
    def accept(self, token: int) -> bool: ...
    def accept_text(self, text: bytes) -> bool: ...

# ---- text

class BpeTokenizer:
    def __init__(
        self,
        tokens: Sequence[str | bytes],
        rules: bytes,
        merges: Sequence[str | bytes],
        pretokenizer: str,
        whole_words: bool,
    ) -> None: ...
    def encode(self, text: bytes, parse_special: bool) -> list[int]: ...

class CharacterTokenizer:
    def __init__(
        self, tokens: Sequence[str | bytes], rules: bytes, merges: Sequence[str | bytes], whole_lines: bool
    ) -> None: ...
    def encode(self, text: bytes, parse_special: bool) -> list[int]: ...

class SpmTokenizer:
    def __init__(
        self, tokens: Sequence[str | bytes], rules: bytes, scores: Sequence[float], space_prefix: bool, unknown: int
    ) -> None: ...
    def encode(self, text: bytes, parse_special: bool) -> list[int]: ...

class WpmTokenizer:
    def __init__(
        self, tokens: Sequence[str | bytes], rules: bytes, lower_case: bool, strip_accents: bool, unknown: int
    ) -> None: ...
    def encode(self, text: bytes, parse_special: bool) -> list[int]: ...

def first_in_hash_order(tokens: Sequence[str | bytes], names: Sequence[str | bytes]) -> int: ...
