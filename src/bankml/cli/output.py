"""Output of the commands: one line at a time, and a progress bar for large files on a terminal."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from bankml.errors import named, one_line

LONG_WORD = 600
"""Characters of a word in an error message: a deeply nested path may have hundreds."""

OUT_OF_MEMORY = b"error: out of memory\n"
"""Written as it is where there is not even memory for a line."""

# Below this a bar would only flicker.
BAR_FROM_BYTES = 32 << 20


def say(text: str) -> None:
    """One line on stdout. Raises as `write`."""
    with _stdout():
        print(_encodable(text, sys.stdout.encoding), flush=True)


def write(data: bytes) -> None:
    """Bytes on stdout, unchanged. Raises FileProblem if they cannot be written, BrokenPipeError if the reader closed
    it."""
    with _stdout():
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


@contextmanager
def _stdout() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        from bankml.files import problem

        raise problem("write", "stdout", error) from error


def note(text: str) -> None:
    """One line on stderr: progress, not an error. A failure to write it is ignored."""
    with suppress(OSError, ValueError):
        print(_encodable(text, sys.stderr.encoding), file=sys.stderr, flush=True)


def _encodable(text: str, encoding: str | None) -> str:
    """One line; a character that the terminal's encoding lacks is escaped, too."""
    encoding = encoding or "utf-8"
    return one_line(text).encode(encoding, "backslashreplace").decode(encoding)


def complain(line: str) -> None:
    """The line of an error, on stderr. A word longer than LONG_WORD is shortened to its two ends."""
    try:
        words = [word if len(word) <= LONG_WORD else f"{word[:100]}…{word[-100:]}" for word in line.split(" ")]
        note(" ".join(words))
    except (MemoryError, SystemError):
        with suppress(OSError):
            os.write(2, OUT_OF_MEMORY)


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], object] | None]:
    """A progress bar over `total` bytes, as a function of the bytes done since its last call; None without a tty."""
    if total < BAR_FROM_BYTES or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    # A terminal of unknown size reports 0 by 0, for which tqdm would draw nothing.
    columns, rows = os.get_terminal_size(sys.stderr.fileno())
    with tqdm(
        total=total,
        desc=one_line(label),
        ncols=columns or 80,
        nrows=rows or 24,
        unit="B",
        unit_scale=True,
        unit_divisor=1024,
        leave=False,
    ) as bar:
        yield bar.update


def file_bar(label: str, path: str | os.PathLike[str]) -> AbstractContextManager[Callable[[int], object] | None]:
    """A progress bar over a file; a file that cannot be opened is reported by the command itself."""
    try:
        size = os.stat(path).st_size
    except (OSError, ValueError):
        size = 0
    return progress_bar(f"{label} {os.path.basename(path)}", size)


def about(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Puts the file's name before a refusal of a room that sees only the header."""
    return named(os.path.basename(path))
