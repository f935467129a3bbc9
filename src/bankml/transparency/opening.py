"""Opens a log to append to it: finds its longest valid beginning, and compares it with its last checkpoint."""

import os
from dataclasses import dataclass

from bankml.errors import Refused, UsageError
from bankml.files import problem
from bankml.transparency.edge import RightEdge
from bankml.transparency.folder import PENDING, LogFolder
from bankml.transparency.note import LogCheckpoint, NoteVerifier, verify
from bankml.transparency.pending import PendingEntries, PendingFile, header, parse
from bankml.transparency.tiles import TileNodes
from bankml.transparency.tree import full_root, root


@dataclass
class OpenedLog:
    """A log that this process alone may write: the right edge of its tree, and the entries that no full bundle has."""

    origin: str
    folder: LogFolder
    lock: int
    edge: RightEdge
    entries: list[bytes]
    pending: PendingFile


def open_log(path: str, key: NoteVerifier | None) -> OpenedLog:
    """Raises UsageError where another process has it, Refused for one that is damaged, is shorter than its checkpoint
    says, or has a checkpoint that `key` did not sign; FileProblem."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise problem("write", path, error) from error
    folder = LogFolder(path)
    lock = folder.lock()
    try:
        return _opened(folder, lock, key)
    except OSError as error:
        os.close(lock)
        raise problem("read", path, error) from error
    except BaseException:
        os.close(lock)
        raise


def _opened(folder: LogFolder, lock: int, key: NoteVerifier | None) -> OpenedLog:
    checkpoint = _checkpoint(folder, key)
    if not os.path.exists(folder.pending):
        if checkpoint is not None or os.path.exists(os.path.join(folder.path, "tile")):
            raise Refused(f"{folder.path} is damaged: its file {PENDING} is missing")
        folder.write_file(PENDING, header(0))
    with open(folder.pending, "rb") as file:
        found = parse(file.read(), folder.pending)
    try:
        edge = RightEdge.read(found.first, folder.read)
        for leaf in found.leaves:
            edge.append(leaf)
        if checkpoint is not None:
            _require_prefix(folder, checkpoint, found, edge)
    except (ValueError, FileNotFoundError) as error:
        raise Refused(f"{folder.path} is damaged: {error}") from None
    origin = f"bankml.localhost/{os.urandom(8).hex()}" if checkpoint is None else checkpoint.origin
    pending = PendingFile(folder.pending, found.valid)
    return OpenedLog(origin, folder, lock, edge, list(found.entries), pending)


def _checkpoint(folder: LogFolder, key: NoteVerifier | None) -> LogCheckpoint | None:
    try:
        note = folder.checkpoint()
        if note is None:
            return None
        checkpoint = LogCheckpoint.of(note)
        if key is not None:
            verify(note, checkpoint.origin, key)
    except ValueError as error:
        raise Refused(
            f"the checkpoint of {folder.path} is refused: {error}; a log has one key, begin another log for another key"
        ) from None
    if key is None and "\n— " in note:
        raise UsageError(f"the checkpoint of {folder.path} is signed: give its key with --sign-key")
    return checkpoint


def _require_prefix(folder: LogFolder, checkpoint: LogCheckpoint, found: PendingEntries, edge: RightEdge) -> None:
    """Raises Refused unless the log begins with the one that the checkpoint is about."""
    if edge.size < checkpoint.size:
        raise Refused(
            f"{folder.path} is damaged: its checkpoint is about {checkpoint.size} entries, and {edge.size} are there"
        )
    tiles = TileNodes(folder.read, found.first)

    def node(level: int, index: int) -> bytes:
        first = index << level
        if first < found.first:
            return tiles(level, index)
        return full_root(found.leaves[first - found.first : first - found.first + (1 << level)])

    if root(node, checkpoint.size) != checkpoint.root:
        raise Refused(f"{folder.path} is damaged: its entries are not those that its checkpoint is about")
