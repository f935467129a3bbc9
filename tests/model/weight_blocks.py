"""Random weights of every type: the same bytes on every machine for the same seed."""

import numpy as np

from bankml import _native

FORMATS = {one.name: one for one in _native.weight_formats()}
# Where a block has its scales in f16.
SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q1_0": (0,), "Q2_0": (0,),
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
    "IQ4_NL": (0,), "IQ4_XS": (0,), "TQ1_0": (52,), "TQ2_0": (64,), "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,),
    "IQ3_XXS": (0,), "IQ3_S": (0,), "IQ1_S": (0,), "IQ1_M": (),
}  # fmt: skip
# Scales that are no numbers, too small to be normal, or of no size.
HARD_SCALES = np.array([np.inf, -np.inf, np.nan, 6e-8, -6e-8, 0.0, -0.0, 65504.0], np.float16)


def random_weights(seed: int, name: str, rows: int, columns: int, hard: bool = False) -> np.ndarray:
    """uint8 [rows, bytes of a row]; `hard`: a block in eight has a scale that is hardly a number."""
    rng = np.random.RandomState(seed)
    if name in ("F32", "F16", "BF16"):
        values = (rng.randint(-1000, 1000, (rows, columns)) / np.float32(8192)).astype(np.float32)
        if name == "F32":
            return values.view(np.uint8)
        return (values.astype(np.float16) if name == "F16" else (values.view(np.uint32) >> 16).astype(np.uint16)).view(
            np.uint8
        )
    format_ = FORMATS[name]
    blocks = rng.randint(0, 256, (rows * columns // format_.block_weights, format_.block_bytes)).astype(np.uint8)
    if name == "MXFP4":
        blocks[:, 0] = rng.randint(0 if hard else 112, 128, len(blocks))
        return blocks.reshape(rows, -1)
    if name == "IQ1_M":  # a quarter of its scale, which is about 0.01, in the top of each of four words
        for i, nibble in enumerate((rng.randint(0, 16, len(blocks)), 1, 1, 2)):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | np.asarray(nibble, np.uint8) << 4
    for at in SCALES[name]:
        scales = (rng.randint(-500, 500, len(blocks)) / np.float32(16384)).astype(np.float16)
        if hard:
            scales = np.where(rng.randint(0, 8, len(blocks)) == 0, rng.choice(HARD_SCALES, len(blocks)), scales)
        blocks[:, at : at + 2] = scales.astype(np.float16)[:, None].view(np.uint8)
    return blocks.reshape(rows, -1)


def random_rows(seed: int, n: int, columns: int) -> np.ndarray:
    """float32 [n, columns] activations, of sizes that differ from row to row."""
    rng = np.random.RandomState(seed)
    sizes = np.float32(2) ** rng.randint(-6, 7, (n, 1)).astype(np.float32)
    return (rng.randint(-4096, 4097, (n, columns)).astype(np.float32) / np.float32(1024) * sizes).astype(np.float32)


def arranged(kind: int, weights: np.ndarray, columns: int, rows: int | None = None) -> np.ndarray:
    """Rows [n, …] in the file's order as products read them: uint8 [bytes]. `kind`: ggml's number of the type; `rows`:
    those of each matrix, all of them where there is one."""
    data = weights.reshape(-1).copy()
    _native.arrange(kind, columns, rows or len(weights), data)
    return data


def product(pool: _native.Pool, name: str, weights: np.ndarray, x: np.ndarray, span: int | None = None) -> np.ndarray:
    """x [n, columns] times the matrix: [n, rows]."""
    rows, y = len(weights), np.zeros((len(x), len(weights)), np.float32)
    kind, columns = FORMATS[name].id, x.shape[1]
    _native.Projection(pool, columns, [(kind, arranged(kind, weights, columns), rows)]).apply(x, y, span)
    return y


def widened(name: str, weights: np.ndarray, columns: int) -> np.ndarray:
    """The weights as float32 [rows, columns]."""
    y = np.zeros((len(weights), columns), np.float32)
    kind = FORMATS[name].id
    embedding = _native.Embedding(kind, columns, arranged(kind, weights, columns))
    embedding.look_up(np.arange(len(weights), dtype=np.int32), y)
    return y
