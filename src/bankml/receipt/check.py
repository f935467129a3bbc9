"""Checks a receipt against the request and the response: every hash is computed from the bytes.

The response is not trusted: it may be damaged, incomplete or something else. Problems are returned as sentences, never
raised.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bankml.receipt.messages import ChatMessages
from bankml.receipt.raw import raw_items, raw_value, repeated_names
from bankml.receipt.receipt import LogprobsHash, sha256_hex
from bankml.receipt.translation import ENDS, Translation
from bankml.receipt.vectors import found_vectors

RECEIPT_KEY = "bankml_receipt"

SCHEMA = 1
"""The version of the receipts that this reads (docs/receipt.schema.json); one without a `schema` is of version 1."""

LOGPROBS = (("completion_probabilities",), ("logprobs",))
"""Where an answer's object, event or line has its probabilities, besides those of its choices."""

PROMPT, COMPLETION = ("prompt_tokens",), ("completion_tokens",)
COUNTS = {
    ("usage.prompt_tokens",): PROMPT,
    ("usage.completion_tokens",): COMPLETION,
    ("usage.total_tokens",): PROMPT + COMPLETION,
    ("timings.prompt_n", "timings.cache_n"): PROMPT,
    ("timings.predicted_n",): COMPLETION,
    ("prompt_eval_count",): PROMPT,
    ("eval_count",): COMPLETION,
    ("tokens_evaluated",): PROMPT,
    ("tokens_predicted",): COMPLETION,
}
"""Where an answer counts its tokens, and which of the receipt's counts that is; of several the sum is meant. What is
said last counts: a stream may count as it goes."""

MARKS = ("choices", "done", "stop")
"""What the objects of `/v1`, of `/api` and of `/completion` have."""

PromptField = Literal["messages", "prompt"]
"""The member of a request that has its input: a chat, or one prompt."""


@dataclass(frozen=True)
class Checked:
    """The receipt and the text of an answer, and every problem found (none: the receipt is true). `objects` are those
    of the answer, in the form of OpenAI's where its API is another one with messages."""

    receipt: Mapping[str, object] | None
    text: str
    problems: tuple[str, ...]
    objects: tuple[Mapping[str, Any], ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def check(request_body: bytes, answer: bytes) -> Checked:
    """Checks an answer of `/v1/chat/completions`, `/v1/completions`, `/v1/responses`, `/v1/messages`, `/completion`,
    `/api/chat`, `/api/generate`, or of the routes of embeddings and reranking, against its request's body.

    The answer is a JSON object, an event stream, or lines of JSON. Its text is at the place where that API has it. A
    receipt has `logprobs_sha256` exactly when the answer carries probabilities, and the answer's counts are its own.
    """
    selected = _selects_fields(request_body)
    try:
        sources = _json_texts(answer, selected)
        translation = Translation()
        objects = [translation.of(_object(source)) for source in sources]
    except UnicodeDecodeError as error:
        return Checked(None, "", (f"the answer cannot be read: it is not UTF-8 (byte {error.start})",))
    except ValueError as error:
        return Checked(None, "", (f"the answer cannot be read: {error}",))
    field = prompt_field_of(request_body)
    text = "".join(part for found in objects for part in texts(found, field, selected))
    receipts = [found[RECEIPT_KEY] for found in objects if RECEIPT_KEY in found]
    if len(receipts) != 1 or not isinstance(receipts[0], dict):
        return Checked(None, text, (f"the answer carries {len(receipts)} receipts, not one",))
    receipt = receipts[0]
    data, counted = text.encode("utf-8", "surrogatepass"), receipt.get("vectors")
    try:
        vectors = found_vectors(objects) if not any(mark in found for found in objects for mark in MARKS) else None
    except ValueError as error:
        return Checked(receipt, text, (f"the answer's vectors cannot be checked: {error}",))
    if vectors is not None:
        data = vectors.data
    problems = [
        problem
        for problem in (
            _differs("response_sha256", receipt, "the answer's text" if vectors is None else "the vectors", data),
            _vectors_differ(counted, None if vectors is None else vectors.count),
            _differs("request_sha256", receipt, "the request's body", request_body),
            *_messages_differ(receipt, objects),
            _logprobs_differ(receipt, sources),
            *_arrays_differ(objects),
            *(() if _several(objects, selected) else _counts_differ(receipt, objects)),
            _mixed(objects),
            *_unreadable(receipt, sources),
        )
        if problem
    ]
    return Checked(receipt, text, tuple(problems), tuple(objects))


def receipts_in(data: bytes) -> list[Mapping[str, object]]:
    """The receipts of an answer, or the one that `data` is. Raises ValueError, with the rest of a sentence."""
    objects = [_object(source) for source in _json_texts(data)]
    if len(objects) == 1 and "bankml" in objects[0] and RECEIPT_KEY not in objects[0]:
        return [objects[0]]
    found = (one.get(RECEIPT_KEY) for one in objects)
    return [receipt for receipt in found if isinstance(receipt, dict)]


def _differs(field: str, receipt: Mapping[str, object], what: str, data: bytes) -> str | None:
    said, is_really = receipt.get(field), sha256_hex(data)
    return None if said == is_really else f"{field} is {said}, but the sha256 of {what} is {is_really}"


def _vectors_differ(said: object, found: int | None) -> str | None:
    if said == found:
        return None
    return f"vectors is {json.dumps(said)[:80]}, but the answer has {'none' if found is None else found}"


def probabilities(source: str) -> Iterable[bytes]:
    """The source text of the probabilities' entries in one JSON object, which `logprobs_sha256` covers."""
    choices = 0
    while raw_value(source, ("choices", choices)) is not None:
        choices += 1
    for path in (*(("choices", i, "logprobs", "content") for i in range(choices)), *LOGPROBS):
        array = raw_value(source, path) or ""
        if array.startswith("[") and (entries := array[1:-1].strip()):
            yield entries.encode("utf-8", "surrogatepass")


def _logprobs_differ(receipt: Mapping[str, object], sources: Iterable[str]) -> str | None:
    found = LogprobsHash()
    for source in sources:
        for entries in probabilities(source):
            found.add(entries)
    said, is_really = receipt.get("logprobs_sha256"), found.hexdigest()
    if said == is_really:
        return None
    if is_really is None:
        return f"logprobs_sha256 is {said}, but the answer has no probabilities"
    return f"logprobs_sha256 is {said}, but the sha256 of the answer's probabilities is {is_really}"


def _arrays_differ(objects: Iterable[Mapping[str, object]]) -> Iterable[str]:
    """Problems with OpenAI's arrays of probabilities, which repeat the entries that the receipt covers."""
    texts: dict[object, int] = {}
    for choice in _choices(objects):
        index, logprobs, text = str(choice.get("index")), choice.get("logprobs"), choice.get("text")
        at = texts.get(index, 0)
        if isinstance(logprobs, dict) and "tokens" in logprobs:
            entries = logprobs.get("content")
            same = isinstance(entries, list) and all(isinstance(one, dict) for one in entries)
            wanted = classic_arrays(entries, at) if same and entries else {}
            for name, values in wanted.items():
                if logprobs.get(name) != values:
                    yield f"logprobs.{name} is not that of logprobs.content"
            if not wanted:
                yield "logprobs.content is not an array of entries"
        texts[index] = at + (len(text) if isinstance(text, str) else 0)


def _choices(objects: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    for found in objects:
        choices = found.get("choices")
        yield from (one for one in choices if isinstance(one, dict)) if isinstance(choices, list) else ()


def classic_arrays(entries: Sequence[Mapping[str, Any]], at: int) -> dict[str, list[Any]]:
    """OpenAI's arrays, one element a token, of llama-server's entries. `at` is the offset of the first token in the
    text, in characters."""
    value, tops = ("logprob", "top_logprobs") if "logprob" in entries[0] else ("prob", "top_probs")
    offsets = [at]
    for entry in entries[:-1]:
        offsets.append(offsets[-1] + len(str(entry.get("token"))))
    return {
        "tokens": [entry.get("token") for entry in entries],
        "token_logprobs": [entry.get(value) for entry in entries],
        "top_logprobs": [{one["token"]: one[value] for one in entry.get(tops, ())} or None for entry in entries],
        "text_offset": offsets,
    }


def _messages_differ(receipt: Mapping[str, object], objects: Sequence[Mapping[str, object]]) -> Iterable[str]:
    """Problems with what a chat's message has besides its text, and with why it ended."""
    messages, said = ChatMessages(), receipt.get("message_sha256")
    try:
        for found in objects:
            messages.add(found)
        is_really = messages.sha256()
    except ValueError as error:
        yield f"the answer's message cannot be checked: {error}"
        return
    if said != is_really and is_really is None:
        yield f"message_sha256 is {said}, but the answer's message is plain text"
    elif said != is_really:
        yield f"message_sha256 is {said}, but the sha256 of the answer's message is {is_really}"
    reason = messages.finish_reason
    ended = receipt.get("finish_reason", reason)
    if reason != ended:
        yield f"the answer's finish_reason is {json.dumps(reason)[:80]}, but the receipt's is {json.dumps(ended)[:80]}"


def _counts_differ(receipt: Mapping[str, object], objects: Iterable[Mapping[str, object]]) -> Iterable[str]:
    said: dict[tuple[str, ...], list[object]] = {}
    for found in objects:
        for names in COUNTS:
            values = [_at(found, name) for name in names]
            if None not in values:
                said[names] = values
    for names, values in said.items():
        counts = [receipt.get(count) for count in COUNTS[names]]
        if not all(type(one) is int for one in (*values, *counts)) or sum(values) != sum(counts):  # type: ignore[arg-type]
            shown = " + ".join(json.dumps(value)[:80] for value in values)
            true = " + ".join(str(count) for count in counts)
            yield f"{' + '.join(names)} is {shown}, but the receipt's {' + '.join(COUNTS[names])} is {true}"


def _several(objects: Sequence[Mapping[str, object]], selected: bool) -> bool:
    """Whether it has several answers: what it counts then is one of them, as in llama-server, and the receipt all."""
    if selected and len(objects) > 1:  # their indices may be left out
        return True
    found = [*_choices(objects), *(one for one in objects if "stop" in one and "choices" not in one)]
    return any(one.get("index") not in (None, 0) for one in found)


def _unreadable(receipt: Mapping[str, object], sources: Iterable[str]) -> Iterable[str]:
    """A receipt that another reader may read in another way, or that is of a later version."""
    schema = receipt.get("schema", SCHEMA)
    if schema != SCHEMA or isinstance(schema, bool):
        yield f"the receipt's schema is {json.dumps(schema)[:80]}, and this version of bankML reads {SCHEMA}"
    for source in sources:
        written = raw_value(source, (RECEIPT_KEY,))
        if written is not None and (names := repeated_names(written)):
            yield f"the receipt has {', '.join(map(json.dumps, names))} twice"


def _at(found: Mapping[str, object], path: str) -> object:
    value: object = found
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _mixed(objects: Iterable[Mapping[str, object]]) -> str | None:
    """Fields of several APIs: the clients of each would read another text."""
    found = [mark for mark in MARKS if any(mark in one for one in objects)]
    return f"the answer has {' and '.join(found)}, which no one API's answers have" if len(found) > 1 else None


def _selects_fields(request_body: bytes) -> bool:
    """Whether the request is one of `/completion` whose `response_fields` leave out `stop`."""
    try:
        body = json.loads(request_body)
    except (ValueError, RecursionError):
        return False
    fields = body.get("response_fields") if isinstance(body, dict) else None
    return isinstance(fields, list) and bool(fields) and "stop" not in fields


def _json_texts(answer: bytes, selected: bool = False) -> list[str]:
    """The JSON objects of an answer as text: one, or one for each event or line of a complete stream. Of an answer with
    `selected` fields it is the receipt that ends the stream."""
    body = answer.decode("utf-8")
    if body.lstrip().startswith("[") and (elements := _elements(body)):
        return elements
    if body.lstrip().startswith("{"):
        lines = [line for line in body.split("\n") if line.strip()]
        return lines if len(lines) > 1 and _are_objects(lines) else [body]
    events = [line.removeprefix("data:").strip() for line in body.split("\n") if line.startswith("data:")]
    if not events:
        raise ValueError("it is neither a JSON object nor a stream of events")
    if events[-1] == "[DONE]":
        return events[:-1]
    last = _object(events[-1])
    ended = last.get("stop") is True or last.get("type") in ENDS or (selected and RECEIPT_KEY in last)
    if not ended:  # what ends a stream of /completion, and others
        raise ValueError("the stream ends without data: [DONE]")
    return events


def _elements(body: str) -> list[str]:
    """The elements of an array of answers, each as its own text."""
    try:
        json.loads(body)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    return raw_items(body)


def _are_objects(lines: list[str]) -> bool:
    """Whether each line is an object, as in Ollama's streams, whose last object has `done`."""
    try:
        json.loads(lines[0])
    except ValueError:
        return False
    if _object(lines[-1]).get("done") is not True:
        raise ValueError('the stream ends without a line that says "done": true')
    return True


def _object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it has JSON that is not an object")
    return value


def prompt_field_of(request_body: bytes) -> PromptField | None:
    """The member that has the request's input, where it has exactly one of the two."""
    try:
        body = json.loads(request_body)
    except (ValueError, RecursionError):
        return None
    found = [name for name in get_args(PromptField) if isinstance(body, dict) and body.get(name) is not None]
    return found[0] if len(found) == 1 else None


def texts(found: Mapping[str, object], field: PromptField | None = None, selected: bool = False) -> Iterable[str]:
    """The parts of the text in one JSON object (a response, an event or a line), which `response_sha256` covers.

    An object with `choices` is of `/v1`, one with `done` of `/api`, one with `stop` of `/completion`; text elsewhere
    than their clients look for it is none. `field` decides between a chat's place and a prompt's. `selected`: the
    request's `response_fields` leave out `stop`.
    """
    choices = found.get("choices")
    if isinstance(choices, list):
        for choice in choices:
            if isinstance(choice, dict):
                yield from _said(choice, "message" if "message" in choice else "delta", "text", field)
    elif "done" in found:
        yield from _said(found, "message", "response", field)
    elif ("stop" in found or selected) and isinstance(text := found.get("content"), str):
        yield text


def _said(holder: Mapping[str, object], chat: str, prompt: str, field: PromptField | None) -> Iterator[str]:
    """The text of an object at `chat`, inside a message, and at `prompt`, unchanged."""
    message = holder.get(chat)
    content = message.get("content") if isinstance(message, dict) else None
    if field != "prompt" and isinstance(content, str):
        yield content
    text = holder.get(prompt)
    if field != "messages" and isinstance(text, str):
        yield text
