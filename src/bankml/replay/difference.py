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
    at, position = 0, 0
    for token in slot.tokens[n_prompt:]:
        piece = resident.tokens.piece(token)
        if before[at : at + len(piece)] != piece:
            break
        at, position = at + len(piece), position + 1
    row = _row(resident.engine.model, slot, n_prompt + position)

    def candidate(rest: bytes) -> Candidate | None:
        found = resident.tokens.encode(rest.decode("utf-8", "ignore"), False)
        return _candidate(found[0], row, resident.tokens) if found else None

    sampled = slot.tokens[n_prompt + position : n_prompt + position + 1]
    computed = _candidate(sampled[0], row, resident.tokens) if sampled else candidate(after[at:])
    return TokenDifference(number, position, computed, candidate(before[at:]))


def _row(model: ForwardPass, slot: Slot, position: int) -> Logits:
    """The logits of the token at `position`, which follow from the one before it."""
    before = slot.tokens[position - 1]
    found = model.forward([Span([before], position - 1, slot.cells)], True)
    assert found is not None  # logits were asked for
    row: Logits = found[0]
    return row


def _candidate(token: int, row: Logits, tokens: Tokens) -> Candidate:
    exact = row.astype(np.float64)
    weights = np.exp(exact - exact.max())
    return Candidate(token, tokens.spelling(token).decode("utf-8", "replace"), float(weights[token] / weights.sum()))
