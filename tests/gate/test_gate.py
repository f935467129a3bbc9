import json
import os
import threading
from hashlib import sha256

import pytest

from bankml.errors import FileProblem, ModelChanged, Refused, Truncated
from bankml.gate.digest import sha256_file
from bankml.gate.fork import read_fork, record_pin
from bankml.gate.guard import guard, kv_f16_bytes_per_token
from bankml.gate.verify import pin, record, verify
from tests.attacks.build import ARCH, U8, U32, array, gguf, string, tensor, u32

GOOD = gguf((ARCH, string("general.name", "Small")), (tensor("a", (32, 2), 8, 0), tensor("b", (8,), 0, 96)), 128)
HEX = sha256(GOOD).hexdigest()


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(GOOD)
    return path


@pytest.fixture
def fork(tmp_path):
    path = tmp_path / "FORK.json"
    path.write_text(json.dumps({"note": "é", "files": [{"path": "m.gguf", "bytes": len(GOOD), "sha256": HEX}]}))
    return path


def pinned_to(path, value):
    path.write_text(json.dumps({"files": [{"path": "m.gguf", "sha256": value}]}))


# guard


def test_a_good_header_plays(model):
    verdict = guard(model)
    assert verdict.as_json() == {
        "verdict": "play",
        "engine": "mainline",
        "gguf_version": 3,
        "arch": "llama",
        "name": "Small",
        "tensors": 2,
        "types": {"F32": 1, "Q8_0": 1},
        "kv_f16_bytes_per_token": None,
    }


def test_types_are_counted_in_the_order_of_their_ids(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(
        gguf(tensors=(tensor("a", (64,), 42, 0), tensor("b", (1,), 1, 32), tensor("c", (1,), 0, 64)), data=96)
    )
    assert list(guard(path).as_json()["types"].items()) == [("F32", 1), ("F16", 1), ("Q2_0", 1)]


def test_the_fork_plays_what_mainline_refuses_with_every_reason(tmp_path):
    path = tmp_path / "Bonsai2.gguf"
    infos = (tensor("a", (128,), 142, 0), tensor("b", (128,), 143, 64))
    names = (string("general.name", "BONSAI 2"), string("general.basename", "prism-fork-required"))
    path.write_bytes(gguf((ARCH, *names), infos, 96))
    verdict = guard(path)
    assert verdict.kind == "refuse" and len(verdict.reasons) == 5
    assert str(verdict.error()) == f"Bonsai2.gguf: guard refused: {'; '.join(verdict.reasons)}"
    assert guard(path, "prism").kind == "play"


def test_legacy_q2_0_is_refused_by_either_engine(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf(tensors=(tensor("t", (256, 4), 42, 0),), data=272))
    assert guard(path).kind == guard(path, "prism").kind == "refuse"


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        ({"block_count": 28, "head_count_kv": 8, "key_length": 128, "value_length": 128}, 28 * 8 * 256 * 2),
        ({"block_count": 30, "head_count": 9, "head_count_kv": 3, "embedding_length": 576}, 30 * 3 * 128 * 2),
        ({"block_count": 2, "head_count": 4, "embedding_length": 32}, 2 * 4 * 16 * 2),
        ({"block_count": 2, "head_count": 4, "key_length": 8, "value_length": 4}, 2 * 4 * 12 * 2),
        ({"block_count": 2, "head_count": 4}, None),
        ({"head_count": 4, "embedding_length": 32}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_kv_size(keys, size):
    top = ("block_count", "embedding_length")
    metadata = {f"x.{name}" if name in top else f"x.attention.{name}": value for name, value in keys.items()}
    assert kv_f16_bytes_per_token({"general.architecture": "x", **metadata}) == size


def test_kv_heads_block_by_block(tmp_path):
    path = tmp_path / "m.gguf"
    heads = array("llama.attention.head_count_kv", U32, 3, b"".join(n.to_bytes(4, "little") for n in (1, 0, 2)))
    common = (ARCH, u32("llama.attention.key_length", 8), u32("llama.attention.value_length", 8), heads)
    path.write_bytes(gguf((*common, u32("llama.block_count", 3))))
    assert guard(path).kv_bytes == 3 * 16 * 2
    path.write_bytes(gguf((*common, u32("llama.block_count", 4))))
    assert guard(path).reasons == ("llama.attention.head_count_kv lists 3 blocks where there are 4",)


def test_more_blocks_than_are_read_are_not_counted(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf((ARCH, array("llama.attention.head_count", U8, 1 << 17, bytes(1 << 17)))))
    (reason,) = guard(path).reasons
    assert reason == "'llama.attention.head_count' lists 131072 blocks, more than the 65536 that are read"


@pytest.mark.parametrize("key", ["general.architecture", "general.name", "general.basename"])
def test_a_name_that_is_no_name_is_not_told_in_full(tmp_path, key):
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf((ARCH, string(key, "x" * 5000))))
    verdict = guard(path)
    assert verdict.reasons[0].startswith(f"{key} is 5000 characters long, past the 1024 that are read: 'xxx")
    assert len(json.dumps(verdict.as_json())) < 600


# fork and pin


def test_pin_says_what_the_reference_says(model, fork):
    assert pin(model, fork).sha256 == HEX
    pinned_to(fork, "0" * 64)
    with pytest.raises(Refused, match=f"^m.gguf sha256 {HEX} != pinned {'0' * 64}: refused$"):
        pin(model, fork)
    for value in ("abc", "g" * 64, HEX + "\n", None, 7):
        pinned_to(fork, value)
        with pytest.raises(Refused, match=r"^m.gguf has no sha256 record in FORK.json: unpinned, refused$"):
            pin(model, fork)


def test_hex_digits_may_be_upper_case_and_records_that_agree_are_one(model, fork):
    records = [7, {"path": "x"}, {"path": "m.gguf", "sha256": HEX.upper()}, {"path": "m.gguf", "sha256": HEX}]
    fork.write_text(json.dumps({"files": records}))
    assert pin(model, fork).sha256 == HEX


@pytest.mark.parametrize("other", ["0" * 64, "short", None])
def test_records_that_contradict_each_other_pin_nothing(model, fork, other):
    records = [{"path": "m.gguf", "sha256": HEX}, {"path": "m.gguf", "sha256": other}]
    fork.write_text(json.dumps({"files": records}))
    for check in (pin, verify):
        with pytest.raises(Refused, match=r"^m.gguf has records in FORK.json that contradict each other: ambiguous"):
            check(model, fork)
    if other == "0" * 64:
        with pytest.raises(Refused, match=f"already pinned to {other}"):
            record(model, fork)
    record(model, fork, HEX)
    assert pin(model, fork).sha256 == HEX


def test_the_sha256_alone_decides(model, fork):
    fork.write_text(json.dumps({"files": [{"path": "m.gguf", "bytes": 1, "sha256": HEX}]}))
    assert pin(model, fork).sha256 == verify(model, fork).sha256 == HEX
    record(model, fork)
    assert json.loads(fork.read_text())["files"][0]["bytes"] == len(GOOD)


def test_a_missing_file_is_an_io_error_with_and_without_a_record(model, fork):
    model.unlink()
    for text in (fork.read_text(), "{}"):
        fork.write_text(text)
        for check in (pin, verify, record):
            with pytest.raises(FileProblem, match=rf"^cannot read {model}: no such file"):
                check(model, fork)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"files": 3}', b"[" * 100_000, b"\xff\xfe", b'"x"'], ids=repr)
def test_an_unreadable_fork_is_no_missing_pin(model, fork, raw):
    fork.write_bytes(raw)
    with pytest.raises(FileProblem, match=r"^cannot read .*FORK.json: "):
        pin(model, fork)


def test_a_missing_fork_is_an_io_error(model, tmp_path):
    with pytest.raises(FileProblem, match="no such file"):
        verify(model, tmp_path / "none.json")


def test_a_document_without_files_pins_nothing(model, fork):
    fork.write_text("{}")
    with pytest.raises(Refused, match="unpinned"):
        pin(model, fork)


def test_record_keeps_all_else(model, fork):
    fork.write_text(
        json.dumps({"note": "é", "files": [{"path": "x"}, 7], "big": 12345678901234567890}, ensure_ascii=False)
    )
    fork.chmod(0o600)
    assert record(model, fork).sha256 == HEX
    assert json.loads(fork.read_text()) == {
        "note": "é",
        "files": [{"path": "x"}, 7, {"path": "m.gguf", "bytes": len(GOOD), "sha256": HEX}],
        "big": 12345678901234567890,
    }
    assert fork.stat().st_mode & 0o777 == 0o600
    assert pin(model, fork).sha256 == HEX


def test_record_makes_the_fork_and_goes_through_a_link(model, tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    real.write_text("{}")
    record(model, link)
    assert link.is_symlink() and json.loads(real.read_text())["files"][0]["sha256"] == HEX
    record(model, tmp_path / "new.json", HEX)
    assert pin(model, tmp_path / "new.json")


def test_record_is_refused_when_the_hash_differs_or_another_is_pinned(model, fork):
    before = fork.read_bytes()
    with pytest.raises(Refused, match=f"^m.gguf sha256 {HEX} != given {'0' * 64}: refused$"):
        record(model, fork, "0" * 64)
    assert fork.read_bytes() == before
    pinned_to(fork, "0" * 64)
    before = fork.read_bytes()
    with pytest.raises(Refused, match="already pinned"):
        record(model, fork)
    assert fork.read_bytes() == before
    assert record(model, fork, HEX) and pin(model, fork)


def test_two_writers_lose_no_record(tmp_path):
    path = tmp_path / "FORK.json"
    threads = [
        threading.Thread(target=record_pin, args=(path, f"m{n}", 1, HEX), kwargs={"replace": False}) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {record["path"] for record in read_fork(path).records} == {f"m{n}" for n in range(16)}
    assert list(tmp_path.iterdir()) == [path]


# verify


def test_verified(model, fork, tmp_path):
    seen = []
    link = tmp_path / "other" / "m.gguf"
    link.parent.mkdir()
    link.symlink_to(model)
    verified = verify(link, fork, seen.append)
    assert (verified.path, verified.sha256, verified.name) == (str(model), HEX, "m.gguf")
    assert verified.verdict.kind == "play" and verified.header.tensors[1].name == "b"
    assert verified.identity.size == len(GOOD) == sum(seen)
    verified.check_unchanged()


def touched(path):
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))


def replaced(path):
    other = path.with_suffix(".new")
    other.write_bytes(GOOD)
    os.replace(other, path)


@pytest.mark.parametrize("change", [touched, replaced, os.unlink, lambda path: path.write_bytes(GOOD + b"x")])
def test_any_change_is_seen_afterwards(model, fork, change):
    verified = verify(model, fork)
    change(model)
    with pytest.raises(ModelChanged, match=r"^m\.gguf changed since it was verified"):
        verified.check_unchanged()


@pytest.mark.parametrize("change", [touched, replaced, lambda path: path.write_bytes(GOOD + b"x")])
def test_a_change_while_hashing_is_refused(model, fork, change):
    for check in (verify, pin):
        model.write_bytes(GOOD)
        with pytest.raises(ModelChanged, match=r"^m\.gguf changed while it was hashed: refused$"):
            check(model, fork, lambda count: change(model))


def test_verify_refuses_by_the_guard_before_it_hashes(model, fork):
    def no_hashing(count):
        pytest.fail("hashed")

    model.write_bytes(GOOD[:40])
    with pytest.raises(Truncated, match=r"^m\.gguf: guard needs \d+ header bytes: file truncated$"):
        verify(model, fork, no_hashing)
    model.write_bytes(GOOD[:-1])
    with pytest.raises(Refused, match=r"^m\.gguf: guard refused: "):
        verify(model, fork, no_hashing)
    model.write_bytes(GOOD)

    def useless(header):
        raise Refused(f"{len(header.tensors)} tensors are no use")

    with pytest.raises(Refused, match="2 tensors are no use"):
        verify(model, fork, no_hashing, require=useless)
    pinned_to(fork, "short")
    with pytest.raises(Refused, match="unpinned"):
        verify(model, fork, no_hashing)


def test_hash_of_files_of_every_length_about_a_chunk(tmp_path):
    path = tmp_path / "x"
    for length in (0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20):
        path.write_bytes(bytes(length))
        assert sha256_file(path) == sha256(bytes(length)).hexdigest()
