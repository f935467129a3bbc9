"""Serializes JSON: UTF-8, ", " and ": " as separators, no unnecessary escapes.

Receipts hash some of these bytes, so there is one serializer. The values come from this program: NaN in them is a
defect and raises ValueError; a lone surrogate cannot be encoded in UTF-8 and becomes U+FFFD.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime


def json_bytes(value: object) -> bytes:
    """`value` as JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def sse_event(value: Mapping[str, object], name: str = "") -> bytes:
    """`value` as one server-sent event, with its name if it has one."""
    head = b"event: " + name.encode("utf-8") + b"\n" if name else b""
    return head + b"data: " + json_bytes(value) + b"\n\n"


def ndjson_line(value: Mapping[str, object]) -> bytes:
    """`value` as one line of newline-delimited JSON."""
    return json_bytes(value) + b"\n"


DONE = b"data: [DONE]\n\n"
"""The event that ends a stream of OpenAI's APIs."""


def rehashed(model: str, sha256: str, moment: float) -> dict[str, object]:
    """The response to `POST /bankml/verify`: the file of `model` had this sha256 at `moment` (since the epoch)."""
    return {"model": model, "model_sha256": sha256, "rehashed_at": utc_time(moment)}


def utc_time(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
