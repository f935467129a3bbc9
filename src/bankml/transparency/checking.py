"""Receipts and their proofs: what a client asks of a log, and what it verifies without it."""

from collections.abc import Mapping

from bankml.errors import Refused
from bankml.transparency.folder import LogFolder
from bankml.transparency.note import LogCheckpoint, NoteVerifier
from bankml.transparency.proof import InclusionProof
from bankml.transparency.reader import LogReader
from bankml.transparency.receipts import entry_of, place_of

PATIENCE = 30.0
"""Seconds for a file of a log over HTTP."""


def reader_of(where: str, key: NoteVerifier | None) -> LogReader:
    """The log in a folder, or at a URL such as http://127.0.0.1:18093/bankml/log."""
    if where.startswith(("http://", "https://")):
        return LogReader(where, lambda path: _fetched(f"{where.rstrip('/')}/{path}"), key)
    return LogReader(where, LogFolder(where).read, key)


def prove(reader: LogReader, receipt: Mapping[str, object]) -> InclusionProof:
    """The proof that the log has `receipt`. Raises Refused, FileProblem."""
    origin, index = place_of(receipt)
    checkpoint, _ = reader.checkpoint()
    if checkpoint.origin != origin:
        raise Refused(f"the receipt is in the log {origin}, and {reader.name} is {checkpoint.origin}")
    return reader.prove(_entry(receipt), index)


def verify_proof(receipt: Mapping[str, object], text: str, key: NoteVerifier | None) -> LogCheckpoint:
    """The checkpoint of the log that has `receipt`, by a proof alone. Raises Refused."""
    origin, index = place_of(receipt)
    try:
        proof = InclusionProof.of(text)
        checkpoint = proof.verify(_entry(receipt), key)
    except ValueError as error:
        raise Refused(f"the proof is refused: {error}") from None
    if (checkpoint.origin, proof.index) != (origin, index):
        proven = f"the proof is about entry {proof.index} of {checkpoint.origin}"
        raise Refused(f"{proven}, and the receipt is entry {index} of {origin}")
    return checkpoint


def _entry(receipt: Mapping[str, object]) -> bytes:
    try:
        return entry_of(receipt)
    except ValueError as error:
        raise Refused(f"the receipt has no canonical form: {error}") from None


def _fetched(url: str) -> bytes:
    """Raises OSError."""
    from urllib.request import urlopen

    with urlopen(url, timeout=PATIENCE) as answer:
        data: bytes = answer.read()
        return data
