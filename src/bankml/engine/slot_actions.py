"""Saving, restoring and erasing the slot. The caller holds the model's lock."""

from dataclasses import dataclass

from bankml.engine import slot_file
from bankml.engine.completion import Engine
from bankml.engine.slot_file import NotASlotFile, NotRestored, Origin
from bankml.engine.slot_folder import NotPlainFile, SlotFolder
from bankml.errors import FileProblem, RequestError

NOTHING_TO_RESTORE = "No available space in KV cache or invalid slot save file"
"""llama-server's words for a file that is missing or is not a slot file."""


@dataclass(frozen=True)
class SlotTransfer:
    """Tokens saved or restored, and the size of their file."""

    n_tokens: int
    nbytes: int


def save(engine: Engine, model_sha256: str, folder: SlotFolder, name: str) -> SlotTransfer:
    """Writes the slot to the file `name`. Raises RequestError for a name that is not a regular file's, FileProblem; the
    file is then unchanged."""
    tokens = engine.slot.tokens
    _require_no_window(engine, "save")
    origin = Origin.of(engine.model, model_sha256)
    try:
        key = folder.writing_key()
        with folder.replacing(name) as out:
            nbytes = slot_file.write(out, origin, tokens, engine.model, key)
    except NotPlainFile as error:
        raise RequestError(f"Unable to save slot: {error.message}") from error
    except FileProblem as error:
        raise FileProblem(f"Unable to save slot: {error.message}") from error
    return SlotTransfer(len(tokens), nbytes)


def restore(engine: Engine, model_sha256: str, folder: SlotFolder, name: str) -> SlotTransfer:
    """Fills the slot from the file `name`; later receipts of this model's name the file's sha256.

    Raises RequestError with the reason. The slot is then as it was where there is no such file, else empty.
    """
    _require_no_window(engine, "restore")
    origin = Origin.of(engine.model, model_sha256)
    try:
        with folder.reading(name) as source:
            key = folder.reading_key()
            engine.slot.clear()
            restored = slot_file.read(source, origin, engine.model, key)
    except (FileNotFoundError, NotASlotFile):
        raise RequestError(f"Unable to restore slot: {NOTHING_TO_RESTORE}") from None
    except (FileProblem, NotRestored) as error:
        raise RequestError(f"Unable to restore slot: {error}") from error
    except OSError as error:
        raise RequestError(f"Unable to restore slot: cannot read {name}: {error.strerror}") from error
    engine.slot.extend(restored.tokens)
    engine.restored.append(restored.sha256)
    return SlotTransfer(len(restored.tokens), origin.file_bytes(len(restored.tokens)))


def erase(engine: Engine) -> int:
    """Empties the slot; returns how many tokens it had. The prompt cache stays as it is."""
    n_erased = len(engine.slot)
    engine.slot.clear()
    if engine.windows is not None:
        engine.windows.replace(())
    return n_erased


def _require_no_window(engine: Engine, action: str) -> None:
    if engine.windows is not None:
        raise RequestError(f"Unable to {action} slot: slot files of models with a sliding window are not supported")
