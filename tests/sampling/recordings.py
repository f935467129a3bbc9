"""Where the recorded draws are, and how what they left is summed up."""

import hashlib
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[1] / "recordings" / "sampling" / "draws.json"


def checksum(ids: np.ndarray, logits: np.ndarray, probabilities: np.ndarray) -> str:
    """Over the bits of all three; every NaN counts as the same."""
    clean = np.where(np.isnan(probabilities), np.float32(np.nan), probabilities).astype(np.float32)
    parts = (ids.astype(np.int32), logits.astype(np.float32), clean)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]
