"""Appending: what is on the disk whatever ends the process, what is refused, and what a reader finds."""

import itertools
import os
import shutil
import threading
from pathlib import Path

import pytest

from bankml.errors import LogUnavailable, Refused, UsageError
from bankml.signing import ed25519
from bankml.signing.keys import SigningKey
from bankml.transparency import pending
from bankml.transparency.folder import LogFolder
from bankml.transparency.reader import LogReader
from bankml.transparency.tree import inclusion_root, leaf_hash
from bankml.transparency.writer import LogSync, LogWriter
from tests.transparency.logs import entries_of, entry, fill, reader, without_publishing, without_syncing, writing


@pytest.fixture(scope="module")
def key():
    return SigningKey(ed25519.new_key())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log"


@pytest.mark.parametrize("count", [0, 1, 2, 255, 256, 257, 511, 512, 513, 700])
def test_what_is_appended_is_read_and_proven(path, key, count):
    fill(path, count, key)
    found = reader(path, key.public)
    checkpoint = found.verify()
    assert checkpoint.size == count and entries_of(path) == [entry(number) for number in range(count)]
    for index in {0, count // 2, count - 1} if count else ():
        proof = found.prove(entry(index), index)
        assert inclusion_root(leaf_hash(entry(index)), index, count, proof.hashes) == checkpoint.root
        assert proof.verify(entry(index), key.public) == checkpoint


def test_a_log_grows_over_restarts_and_stays_consistent(path, key):
    checkpoints = []
    origin = fill(path, 0, key)
    for size in (1, 2, 200, 256, 300, 512, 513):
        assert fill(path, size, key) == origin
        checkpoints.append(reader(path, key.public).checkpoint()[0])
    found = reader(path, key.public)
    for old in checkpoints:
        for new in checkpoints:
            if old.size <= new.size:
                found.require_consistent(old, new)
            else:
                with pytest.raises(Refused, match="the log has shrunk: from"):
                    found.require_consistent(old, new)


def test_more_than_a_tile_of_tiles(path, monkeypatch):
    """65,536 entries and more: the second level has a full tile."""
    without_publishing(monkeypatch)
    without_syncing(monkeypatch)
    with writing(path, None, LogSync.EVERY_SECOND) as log:
        for _ in range(65536 + 300):
            log.append(entry)
    assert Path(path, "tile/1/000").stat().st_size == 8192 and Path(path, "tile/2/000.p/1").exists()
    with writing(path) as log:
        assert log.append(entry) == 65836
    folder, files = LogFolder(str(path)), []
    found = LogReader("the log", lambda name: (files.append(name), folder.read(name))[1])
    for index in (0, 255, 256, 65535, 65536, 65835, 65836):
        files.clear()
        found.prove(entry(index), index).verify(entry(index), None)
        assert len(files) <= 6, "a proof takes a few tiles, however long the log is"


def test_one_process_writes_a_log(path):
    with writing(path), pytest.raises(UsageError, match=rf"is in use by another server \(process {os.getpid()}\)"):
        LogWriter(str(path))
    with writing(path):
        pass


def test_a_log_has_one_key(path, key):
    fill(path, 3, key)
    with pytest.raises(Refused, match="it is not signed by the key given; a log has one key"):
        LogWriter(str(path), SigningKey(ed25519.new_key()))
    with pytest.raises(UsageError, match="give its key with --sign-key"):
        LogWriter(str(path))
    fill(path, 4, key)
    fill(path.parent / "unsigned", 2)
    with pytest.raises(Refused, match="it is not signed"):
        LogWriter(str(path.parent / "unsigned"), key)


# ---- whatever ends the process


def test_cut_at_every_byte_the_log_is_its_longest_valid_beginning(path, tmp_path, monkeypatch):
    """The file as it is when the process is killed after any byte of a write."""
    without_publishing(monkeypatch)
    without_syncing(monkeypatch)
    folder = LogFolder(str(path))
    log = LogWriter(str(path))
    ends = [log._pending.size]
    for _ in range(4):
        log.append(entry)
        ends.append(log._pending.size)
    data = Path(folder.pending).read_bytes()
    assert ends[-1] == len(data)
    for cut in range(ends[0], len(data) + 1):
        copy = tmp_path / "copy"
        shutil.copytree(path, copy)
        Path(copy, "pending").write_bytes(data[:cut])
        complete = sum(end <= cut for end in ends) - 1
        with writing(copy) as found:
            assert found.size == complete and found.origin == log.origin
            assert found.append(entry) == complete
        assert entries_of(copy) == [entry(number) for number in range(complete + 1)]
        reader(copy).verify()
        shutil.rmtree(copy)
    log.close()


class Stopped(Exception):
    """The process ended here."""


def test_killed_at_any_step_of_sealing_a_tile(path, monkeypatch):
    step, stopped = 0, True
    while stopped:
        with monkeypatch.context() as patch:
            without_publishing(patch)
            without_syncing(patch)
            log = LogWriter(str(path))
            for _ in range(256):
                log.append(entry)
            steps = itertools.count()

            def stopping(real, step=step, steps=steps):
                def call(*words, **more):
                    if next(steps) == step:
                        raise Stopped
                    return real(*words, **more)

                return call

            for name in ("open", "replace", "fsync"):  # of the tiles, and of the next file of pending entries
                patch.setattr(os, name, stopping(getattr(os, name)))
            try:
                log.append(entry)
                stopped = False
            except Stopped:
                step += 1
            # its thread ends with it: it would publish into the next log, which has the same path
            log._closed.set()
            log._dirty.set()
            log._publisher.join()
        os.close(log._lock_file)
        size = 256 if stopped else 257
        with writing(path) as again:
            assert again.size == size and again.append(entry) == size
        assert entries_of(path) == [entry(number) for number in range(size + 1)]
        assert reader(path).verify().size == size + 1
        shutil.rmtree(path)
    assert step > 10


def test_a_log_that_lost_what_its_checkpoint_has_is_refused(path):
    fill(path, 5)
    pending_file = Path(path, "pending")
    data = pending_file.read_bytes()
    for cut in (len(data) - 1, len(data) // 2, 15):
        pending_file.write_bytes(data[:cut])
        with pytest.raises(Refused, match=r"is damaged: its checkpoint is about 5 entries, and [0-4] are there"):
            LogWriter(str(path))
    pending_file.unlink()
    with pytest.raises(Refused, match="its file pending is missing"):
        LogWriter(str(path))


def test_every_changed_byte_of_pending_entries_is_found(path):
    fill(path, 3)
    pending_file = Path(path, "pending")
    data = pending_file.read_bytes()
    for at in range(len(data)):
        for bit in (0x01, 0x10, 0x80):
            pending_file.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
            with pytest.raises(Refused, match="is damaged"):
                LogWriter(str(path)).close()


def test_a_changed_entry_in_front_of_a_valid_one_is_no_interrupted_write():
    records = [pending.record(entry(n), leaf_hash(entry(n))) for n in range(3)]
    data = pending.header(0) + b"".join(records)
    with pytest.raises(Refused, match="x is damaged: entry 1 is not what was written"):
        pending.parse(data.replace(entry(1), entry(7)), "x")
    assert len(pending.parse(data.replace(entry(2), entry(7)), "x").entries) == 2
    assert len(pending.parse(data + b"\0" * 4096, "x").entries) == 3  # a file system that wrote the length first


def test_every_changed_byte_of_a_closed_log_is_found(path, key):
    """By `verify`, which computes every hash anew; one byte in each 97, for the tiles are large."""
    fill(path, 259, key)
    files = [file for file in Path(path).rglob("*") if file.is_file() and file.name not in ("pending", "lock")]
    assert len(files) == 6
    for file in files:
        data = file.read_bytes()
        for at in range(0, len(data), 97 if len(data) > 1000 else 1):
            file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises(Refused):
                reader(path, key.public).verify()
        for cut in {0, 1, len(data) - 1}:
            file.write_bytes(data[:cut])
            with pytest.raises(Refused):
                reader(path, key.public).verify()
        file.write_bytes(data)
    assert reader(path, key.public).verify().size == 259


@pytest.mark.parametrize("later", [1, 200, 700])
def test_a_backup_that_is_copied_while_the_log_grows(path, tmp_path, later):
    copy = tmp_path / "copy"
    copy.mkdir()
    with writing(path) as log:
        for _ in range(300):
            log.append(entry)
        (copy / "checkpoint").write_bytes(log.checkpoint())
        for _ in range(later // 2):
            log.append(entry)
        shutil.copy(path / "pending", copy)
        for _ in range(later):
            log.append(entry)
        log.checkpoint()
        shutil.copytree(path / "tile", copy / "tile")
    assert reader(copy).verify().size == 300
    reader(path).require_consistent(reader(copy).checkpoint()[0], reader(path).checkpoint()[0])
    with writing(copy) as again:
        assert again.size >= 300


# ---- several threads


def test_entries_that_wait_are_written_together(path, monkeypatch):
    """While one thread is in fsync the others queue up, and the next fsync is for all of them."""
    without_publishing(monkeypatch)
    synced, first, go = [], threading.Event(), threading.Event()
    real = os.fdatasync

    def slow(descriptor):
        synced.append(descriptor)
        first.set()
        assert go.wait(10)
        real(descriptor)

    with writing(path) as log:
        monkeypatch.setattr(pending.os, "fdatasync", slow)
        threads = [threading.Thread(target=log.append, args=(entry,)) for _ in range(20)]
        threads[0].start()
        assert first.wait(10)
        for thread in threads[1:]:
            thread.start()
        while len(log._queue) < 19:
            pass
        go.set()
        for thread in threads:
            thread.join(10)
        assert len(synced) == 2 and log.size == 20
    assert entries_of(path) == [entry(number) for number in range(20)]


def test_many_threads_over_many_tiles(path):
    places = []
    with writing(path) as log:

        def append():
            for _ in range(100):
                places.append(log.append(entry))

        threads = [threading.Thread(target=append) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(places) == list(range(800))
    assert entries_of(path) == [entry(number) for number in range(800)] and reader(path).verify().size == 800


def test_a_checkpoint_has_every_entry_before_it(path):
    with writing(path) as log:
        for size in range(1, 20):
            log.append(entry)
            note = log.checkpoint()
            assert note == log.read("checkpoint") and reader(path).checkpoint()[0].size == size


def test_an_entry_that_is_too_long_is_refused_and_takes_no_place(path):
    with writing(path) as log:
        for size in (0, 65536):
            with pytest.raises(ValueError, match="an entry has 1 to 65535 bytes"):
                log.append(lambda index, size=size: b"x" * size)
        assert log.append(lambda index: b"x" * 65535) == 0 and log.append(entry) == 1
    assert len(entries_of(path)[0]) == 65535


# ---- a disk that is full


class FullDisk:
    """From `full` on, every write of the log fails as on a full disk, after a part of its bytes."""

    def __init__(self, monkeypatch):
        self.full = False
        real = os.pwrite

        def pwrite(descriptor, data, at):
            if self.full:
                if len(data) > 10:
                    return real(descriptor, data[:10], at)
                raise OSError(28, "No space left on device")
            return real(descriptor, data, at)

        monkeypatch.setattr(pending.os, "pwrite", pwrite)
        real_fsync = os.fsync

        def fsync(descriptor):
            if self.full:
                raise OSError(28, "No space left on device")
            real_fsync(descriptor)

        monkeypatch.setattr("bankml.files.os.fsync", fsync)


def test_on_a_full_disk_nothing_is_lost_and_the_log_goes_on_when_there_is_room(path, monkeypatch):
    without_publishing(monkeypatch)
    with writing(path) as log:
        for _ in range(3):
            log.append(entry)
        disk = FullDisk(monkeypatch)
        disk.full = True
        log.require_ready()  # nobody knows yet
        for _ in range(2):
            with pytest.raises(
                LogUnavailable, match="cannot be written, so no answer is given: no space left on device"
            ):
                log.append(entry)
            with pytest.raises(LogUnavailable, match="no space left"):
                log.require_ready()
        assert log.size == 3
        disk.full = False
        log.require_ready()
        assert log.append(entry) == 3
    assert entries_of(path) == [entry(number) for number in range(4)]


def test_a_tile_that_could_not_be_written_is_written_later(path, monkeypatch):
    without_publishing(monkeypatch)
    with writing(path) as log:
        for _ in range(256):
            log.append(entry)
        disk = FullDisk(monkeypatch)
        disk.full = True
        with pytest.raises(LogUnavailable, match="no space left"):
            log.append(entry)
        disk.full = False
        assert log.append(entry) == 256
    assert reader(path).verify().size == 257


def test_after_a_failed_fsync_the_log_is_written_no_more(path, monkeypatch):
    with writing(path) as log:
        log.append(entry)
        monkeypatch.setattr(pending.os, "fdatasync", lambda descriptor: (_ for _ in ()).throw(OSError(5, "I/O error")))
        with pytest.raises(LogUnavailable, match="i/O error"):
            log.append(entry)
        monkeypatch.undo()
        with pytest.raises(LogUnavailable):
            log.append(entry)
        with pytest.raises(LogUnavailable):
            log.require_ready()
    with writing(path) as log:
        assert log.size in (1, 2)
