"""The bytes of vectors and scores that a receipt covers, from what was computed and from an answer."""

import base64
import binascii
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class SupportsBytes(Protocol):
    """An array of float32."""

    def astype(self, dtype: str) -> Any: ...


def vector_bytes(values: SupportsBytes) -> bytes:
    """float32 values, four bytes each, the lowest first."""
    data: bytes = values.astype("<f4").tobytes()
    return data


def score_bytes(scores: Iterable[tuple[int, float]]) -> bytes:
    """Results of a reranking: a document's index as int32, its score as float32, the lowest byte first."""
    return b"".join(struct.pack("<if", index, score) for index, score in scores)


@dataclass(frozen=True)
class FoundVectors:
    """The bytes of an answer's vectors or scores, and their number."""

    data: bytes
    count: int


def found_vectors(objects: Sequence[Mapping[str, object]]) -> FoundVectors | None:
    """What the objects of an answer have of vectors or scores; None: it is no answer of that kind. Raises ValueError
    for what is none."""
    parts = [part for found in objects for part in _parts(found)]
    if not parts and not any(key in found for found in objects for key in ("data", "embeddings", "results")):
        return None
    try:
        data = [part if isinstance(part, bytes) else struct.pack(f"<{len(part)}f", *part) for part in parts]
    except (struct.error, OverflowError):
        raise ValueError("a vector has what is no float32") from None
    return FoundVectors(b"".join(data), len(data))


def _parts(found: Mapping[str, object]) -> Iterator[bytes | Sequence[Any]]:
    """Each vector, or the bytes of each result of a reranking."""
    data, results = found.get("data"), found.get("results")
    if isinstance(data, list):
        for one in data:
            yield from _vectors(one.get("embedding") if isinstance(one, dict) else None)
    elif isinstance(found.get("embeddings"), list):
        yield from _vectors(found["embeddings"])
    elif isinstance(results, list):
        for one in results:
            yield _score(one)
    elif "embedding" in found:
        yield from _vectors(found["embedding"])
    elif "score" in found or "relevance_score" in found:
        yield _score(found)


def _vectors(value: object) -> Iterator[bytes | Sequence[Any]]:
    """One vector, as numbers or as base64, or an array of them."""
    if isinstance(value, str):
        try:
            yield base64.b64decode(value, validate=True)
        except binascii.Error:
            raise ValueError("a vector is not base64") from None
    elif isinstance(value, list) and value and all(isinstance(one, list) for one in value):
        yield from value
    elif isinstance(value, list):
        if value:
            yield value
    else:
        raise ValueError("a vector is neither an array of numbers nor base64")


def _score(result: object) -> bytes:
    index = result.get("index") if isinstance(result, dict) else None
    score = result.get("relevance_score", result.get("score")) if isinstance(result, dict) else None
    try:
        return score_bytes([(index, score)])  # type: ignore[list-item]
    except (struct.error, OverflowError):
        raise ValueError("a result has no index or no score") from None
