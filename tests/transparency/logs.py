"""Logs for tests: entries, a log that is written, and a reader of it."""

import os
from contextlib import contextmanager

from bankml.transparency.folder import LogFolder
from bankml.transparency.reader import LogReader
from bankml.transparency.writer import LogWriter


def entry(number):
    return b'{"n":%d}' % number


@contextmanager
def writing(path, *parts):
    writer = LogWriter(str(path), *parts)
    try:
        yield writer
    finally:
        writer.close()


def fill(path, count, *parts):
    """Appends entries until the log has `count`."""
    with writing(path, *parts) as writer:
        while writer.size < count:
            assert writer.append(entry) == writer.size - 1
        return writer.origin


def reader(path, key=None):
    return LogReader("the log", LogFolder(str(path)).read, key)


def entries_of(path):
    """Every entry that the log's checkpoint is about."""
    found = reader(path)
    size = found.checkpoint()[0].size
    return [one for bundle in found._bundles(size) for one in bundle]


def without_syncing(monkeypatch):
    """What a killed process has written stays, synced or not: tests of that need not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)


def without_publishing(monkeypatch):
    """No checkpoint is written but that of opening: as if the process ended within a second of its last entry."""
    monkeypatch.setattr("bankml.transparency.writer.PUBLISH_EVERY", 3600.0)
