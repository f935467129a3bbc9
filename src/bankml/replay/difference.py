"""The first token at which an answer differs from the one that was computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bankml.engine.parts import ForwardPass, Logits
from bankml.engine.slot import Slot
from bankml.library.resident import Resident, Tokens
from bankml.model.span import Span
from bankml.receipt.check import Checked
from bankml.replay.proposals import known_texts
from bankml.replay.verdict import Candidate, TokenDifference


def first_difference(
    answered: Checked, computed: Checked, slots: Sequence[Slot], n_prompt: int, resident: Resident
) -> TokenDifference | None:
    """Of answers to one prompt of `n_prompt` tokens whose text is all that was generated; None where no token can be
    named, as within a thought or a call. `slots` are those of the answers."""
    old, new = known_texts(answered.objects), known_texts(computed.objects)
    for number, slot in enumerate(slots):
        before, after = old.get(number, "").encode("utf-8", "replace"), new.get(number, "").encode("utf-8", "replace")
        if before != after:
            generated = b"".join(resident.tokens.piece(token) for token in slot.tokens[n_prompt:])
            named = after.startswith(generated)
            return _located(number, before, after, slot, n_prompt, resident) if named else None
    return None


def _located(
    number: int, before: bytes, after: bytes, slot: Slot, n_prompt: int, resident: Resident
) -> TokenDifference:
    def first_token(text: bytes) -> list[int]:
        return list(resident.tokens.encode(text.decode("utf-8", "ignore"), False)[:1])

    at, position, tokens = 0, n_prompt, list(slot.tokens)
    tokens += first_token(
        after[sum(len(resident.tokens.piece(token)) for token in tokens[n_prompt:]) :]
    )  # the last one
    for token in tokens[n_prompt:]:
        piece = resident.tokens.piece(token)
        if before[at : at + len(piece)] != piece:
            break
        at, position = at + len(piece), position + 1
    row = _row(resident.engine.model, slot, tokens[position - 1], position - 1)
    computed, answered = tokens[position : position + 1], first_token(before[at:])
    return TokenDifference(
        number,
        position - n_prompt,
        _candidate(computed[0], row, resident.tokens) if computed else None,
        _candidate(answered[0], row, resident.tokens) if answered else None,
    )


def _row(model: ForwardPass, slot: Slot, token: int, position: int) -> Logits:
    """The logits that follow from `token` at `position`."""
    found = model.forward([Span([token], position, slot.cells)], True)
    assert found is not None  # logits were asked for
    row: Logits = found[0]
    return row


def _candidate(token: int, row: Logits, tokens: Tokens) -> Candidate:
    exact = row.astype(np.float64)
    weights = np.exp(exact - exact.max())
    return Candidate(token, tokens.spelling(token).decode("utf-8", "replace"), float(weights[token] / weights.sum()))
