"""Saving, restoring and erasing a slot, which the caller has in use."""

from dataclasses import dataclass

from bankml.engine import slot_file
from bankml.engine.engine import Engine
from bankml.engine.slot import Slot
from bankml.engine.slot_file import NotASlotFile, NotRestored, Origin, SlotContent
from bankml.engine.slot_folder import NotPlainFile, SlotFolder
from bankml.errors import FileProblem, RequestError

NOTHING_TO_RESTORE = "No available space in KV cache or invalid slot save file"
"""llama-server's words for a file that is missing or is not a slot file."""


@dataclass(frozen=True)
class SlotTransfer:
    """Tokens saved or restored, and the size of their file."""

    n_tokens: int
    nbytes: int


def save(engine: Engine, slot: Slot, model_sha256: str, folder: SlotFolder, name: str) -> SlotTransfer:
    """Writes the slot to the file `name`. Raises RequestError for a name that is not a regular file's, FileProblem; the
    file is then unchanged."""
    _require_no_window(slot, "save")
    tokens = slot.tokens
    origin = Origin.of(slot.cells, engine.model.n_ctx, model_sha256)
    try:
        key = folder.writing_key()
        with folder.replacing(name) as out:
            nbytes = slot_file.write(out, origin, SlotContent(tokens, slot.trace.spans), slot.cells, key)
    except NotPlainFile as error:
        raise RequestError(f"Unable to save slot: {error.message}") from error
    except FileProblem as error:
        raise FileProblem(f"Unable to save slot: {error.message}") from error
    return SlotTransfer(len(tokens), nbytes)


def restore(engine: Engine, slot: Slot, model_sha256: str, folder: SlotFolder, name: str) -> SlotTransfer:
    """Fills the slot from the file `name`; later receipts of this model's name the file's sha256.

    Raises RequestError with the reason. The slot is then as it was where there is no such file, else empty.
    """
    _require_no_window(slot, "restore")
    origin = Origin.of(slot.cells, engine.model.n_ctx, model_sha256)
    try:
        with folder.reading(name) as source:
            key = folder.reading_key()
            slot.clear()
            restored = slot_file.read(source, origin, slot.cells, engine.model.n_vocab, key)
    except (FileNotFoundError, NotASlotFile):
        raise RequestError(f"Unable to restore slot: {NOTHING_TO_RESTORE}") from None
    except (FileProblem, NotRestored) as error:
        raise RequestError(f"Unable to restore slot: {error}") from error
    except OSError as error:
        raise RequestError(f"Unable to restore slot: cannot read {name}: {error.strerror}") from error
    tokens, trace = restored.content.tokens, restored.content.trace
    slot.fill(tokens, trace)
    engine.restored.append(restored.sha256)
    return SlotTransfer(len(tokens), origin.file_bytes(len(tokens), len(trace)))


def erase(slot: Slot) -> int:
    """Empties the slot; returns how many tokens it had. The prompt cache stays as it is."""
    n_erased = len(slot)
    slot.clear()
    if slot.windows is not None:
        slot.windows.replace(())
    return n_erased


def _require_no_window(slot: Slot, action: str) -> None:
    if slot.windows is not None:
        raise RequestError(f"Unable to {action} slot: slot files of models with a sliding window are not supported")
