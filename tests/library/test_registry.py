import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.errors import BankmlError, NotFound, Refused, RequestError
from bankml.library.derived import create, delete
from bankml.library.modelfile import Modelfile
from bankml.library.names import aliases, checked_name, derived_name, names
from bankml.library.reference import PinnedFile
from bankml.library.registry import Registry, default_folder
from tests.library.folders import pin, templated


def test_every_pin_by_name_and_alias(tmp_path):
    (digest,) = pin(tmp_path, "Qw-tiny-Q1_0.gguf")
    registry = Registry(str(tmp_path))
    for name in ("qw-tiny-q1_0", "QW-tiny-Q1_0:latest", "Qw-tiny-Q1_0.gguf", "qw-tiny", "qw-tiny:latest"):
        found = registry.resolve(name)
        assert found.name == "qw-tiny-q1_0" and found.layer is None
        assert found.source == PinnedFile(
            "qw-tiny-q1_0",
            "Qw-tiny-Q1_0.gguf",
            digest,
            str(tmp_path / "Qw-tiny-Q1_0.gguf.FORK.json"),
            str(tmp_path / "Qw-tiny-Q1_0.gguf"),
        )
    with pytest.raises(NotFound, match="unknown model 'other'; this server serves 'qw-tiny-q1_0'"):
        registry.resolve("other")


def test_a_name_without_the_weight_type_is_one_pins_alone(tmp_path):
    pin(tmp_path, "m-Q1_0.gguf")
    registry = Registry(str(tmp_path))
    assert registry.resolve("m").name == "m-q1_0"
    pin(tmp_path, "m-F16.gguf")
    with pytest.raises(NotFound, match=r"available: m-f16, m-q1_0$"):
        registry.resolve("m")
    pin(tmp_path, "m.gguf")
    assert registry.resolve("m").source.file == "m.gguf"
    assert registry.names_of(registry.resolve("m-f16").source) == ("m-f16", "m-f16:latest", "m-f16.gguf")


def test_a_shared_short_name_is_not_the_startup_models_either(tmp_path):
    """One rule for what a name means: the pins' and the startup model's, and a derived model may have what is left."""
    beside, forks = tmp_path / "beside", tmp_path / "forks"
    beside.mkdir(), forks.mkdir()
    templated(beside / "m-F16.gguf")
    (digest,) = pin(beside, "m-F16.gguf")
    startup = PinnedFile(
        "m-f16", "m-F16.gguf", digest, str(beside / "m-F16.gguf.FORK.json"), str(beside / "m-F16.gguf")
    )
    registry = Registry(str(forks), startup)
    assert registry.resolve("m").source == startup
    with pytest.raises(RequestError, match="'m' is the name of a pinned file"):
        create(registry, "m", Modelfile("m-f16"))
    templated(forks / "m-Q1_0.gguf")
    pin(forks, "m-Q1_0.gguf")
    with pytest.raises(NotFound, match=r"available: m-f16, m-q1_0$"):
        registry.resolve("m")
    assert not registry.is_pin("m") and registry.names_of(startup) == ("m-f16", "m-f16:latest", "m-f16.gguf")
    made = create(registry, "m", Modelfile("m-q1_0", system="x"))
    pin(forks, "m-F16.gguf", content=(beside / "m-F16.gguf").read_bytes())
    for where in (registry, Registry(str(forks))):  # a server's, the command line's
        assert where.derived() == [made] and where.problems() == []
        assert where.resolve("m").derived == where.resolve("m:latest").derived == made == where.derived()[0]
        assert [reference.name for reference in where.references()] == ["m-f16", "m-q1_0", "m"]
        assert create(where, "son", Modelfile("m")).layer.system == "x"
        delete(where, "son")


def test_the_startup_model_keeps_its_names_without_a_record(tmp_path):
    (tmp_path / "forks").mkdir()
    (digest,) = pin(tmp_path, "a-F16.gguf")
    fork = tmp_path / "a-F16.gguf.FORK.json"
    startup = PinnedFile("a-f16", "a-F16.gguf", digest, str(fork), str(tmp_path / "a-F16.gguf"))
    registry = Registry(str(tmp_path / "forks"), startup)
    pin(tmp_path / "forks", "A-f16.GGUF", content=b"other")
    fork.write_text('{"files": []}')
    for name in ("a-f16", "a-f16.gguf", "a"):
        with pytest.raises(Refused, match=r"^a-F16\.gguf has no sha256 record in FORK\.json: unpinned, refused$"):
            registry.resolve(name)
        assert registry.is_pin(name)


def test_the_order_is_that_of_the_forks_names_and_the_first_wins(tmp_path):
    """Whatever order the folder lists them in: b.FORK.json was written first."""
    other = tmp_path / "other"
    other.mkdir()
    pin(tmp_path, "x.gguf", "y.gguf", fork="b.FORK.json")
    pin(tmp_path, "X.gguf", "z.gguf", fork="a.FORK.json", content=b"other")
    pin(tmp_path, "y.gguf", "n.gguf", fork="FORK.json")
    registry = Registry(str(tmp_path))
    assert [source.file for source in registry.pins()] == ["y.gguf", "n.gguf", "X.gguf", "z.gguf"]
    assert registry.resolve("x").source.file == "X.gguf"
    # The startup model's own record goes before all of them, wherever it lies.
    (digest,) = pin(other, "y.gguf", content=b"mine")
    startup = PinnedFile("y", "y.gguf", digest, str(other / "y.gguf.FORK.json"), str(other / "y.gguf"))
    registry = Registry(str(tmp_path), startup)
    assert registry.pins()[0] == startup and registry.resolve("y").source == registry.resolve(None).source == startup
    assert [source.file for source in registry.pins()] == ["y.gguf", "n.gguf", "X.gguf", "z.gguf"]


def test_files_are_looked_for_beside_the_startup_model_and_in_the_folder(tmp_path):
    beside, forks = tmp_path / "beside", tmp_path / "forks"
    beside.mkdir(), forks.mkdir()
    (digest,) = pin(beside, "start.gguf")
    (beside / "b.gguf").write_bytes(b"b")
    pin(forks, "b.gguf", "c.gguf", "gone.gguf", fork="all.FORK.json")
    (forks / "gone.gguf").unlink()
    startup = PinnedFile(
        "start", "start.gguf", digest, str(beside / "start.gguf.FORK.json"), str(beside / "start.gguf")
    )
    registry = Registry(str(forks), startup)
    assert [source.path for source in registry.pins()] == [
        str(beside / "start.gguf"),
        str(beside / "b.gguf"),
        str(forks / "c.gguf"),
        None,
    ]
    assert registry.resolve("gone").source.path is None


def test_new_pins_show_at_once_and_changed_ones_too(tmp_path):
    (before,) = pin(tmp_path, "a.gguf")
    registry = Registry(str(tmp_path))
    assert registry.resolve("a").source.sha256 == before
    (tmp_path / "a.gguf").write_bytes(b"changed")
    (after,) = pin(tmp_path, "a.gguf")
    pin(tmp_path, "b.gguf")
    assert registry.resolve("a").source.sha256 == after != before
    assert registry.resolve("b").source.file == "b.gguf"
    (tmp_path / "b.gguf.FORK.json").unlink()
    with pytest.raises(NotFound):
        registry.resolve("b")


def test_the_startup_models_record_is_read_anew_too(tmp_path):
    (digest,) = pin(tmp_path, "a.gguf")
    fork = tmp_path / "a.gguf.FORK.json"
    startup = PinnedFile("a", "a.gguf", digest, str(fork), str(tmp_path / "a.gguf"))
    forks = tmp_path / "forks"
    forks.mkdir()
    pin(forks, "b.gguf")
    registry, alone = Registry(str(forks), startup), Registry(None, startup)
    fork.write_text(json.dumps({"files": [{"path": "a.gguf", "sha256": "0" * 64}]}))
    assert registry.resolve(None).source.sha256 == "0" * 64
    assert alone.resolve(None).source == startup
    fork.unlink()
    for name in (None, "a", "a:latest"):
        with pytest.raises(Refused, match=r"^a\.gguf has no sha256 record in FORK\.json: unpinned, refused$"):
            registry.resolve(name)
    assert registry.resolve("b").name == "b"
    assert [problem.file for problem in registry.problems()] == ["a.gguf.FORK.json"]
    assert alone.resolve("a").source == startup


@pytest.mark.parametrize("damage", ["{", "[]", '{"files": 3}', "\x00" * 100, '{"files": [' * 5000])
def test_a_damaged_fork_takes_nothing_else_down(tmp_path, damage):
    pin(tmp_path, "a.gguf")
    (tmp_path / "0.FORK.json").write_text(damage)
    (tmp_path / "1.FORK.json").mkdir()
    registry = Registry(str(tmp_path))
    assert registry.resolve("a").name == "a"
    assert [problem.file for problem in registry.problems()] == ["0.FORK.json", "1.FORK.json"]
    with pytest.raises(NotFound, match=r"skipped 0\.FORK\.json: cannot read "):
        registry.resolve("b")


@pytest.mark.parametrize("content", [b"root:x:0:0\n", b'{"password": hunter2}', b"hunter2", b"\xfehunter2", b"[1, 2]"])
def test_nothing_of_what_a_fork_is_linked_to_is_told(tmp_path, content):
    """Records may be shared by links; one that leads elsewhere is told by its name alone."""
    folder, outside = tmp_path / "registry", tmp_path / "outside"
    folder.mkdir(), outside.mkdir()
    pin(outside, "a.gguf")
    (folder / "a.gguf").write_bytes((outside / "a.gguf").read_bytes())
    (folder / "a.FORK.json").symlink_to(outside / "a.gguf.FORK.json")
    (outside / "passwd").write_bytes(content)
    (folder / "b.FORK.json").symlink_to(outside / "passwd")
    (folder / "c.FORK.json").symlink_to(outside / "none")
    registry = Registry(str(folder))
    assert registry.resolve("a").source.file == "a.gguf"
    with pytest.raises(NotFound) as refusal:
        registry.resolve("x")
    told = [refusal.value.public_message, *(problem.reason for problem in registry.problems())]
    assert len(told) == 3 and told[1].startswith("cannot read b.FORK.json: not ")
    for one in told:
        assert str(tmp_path) not in one and "root" not in one and "hunter2" not in one and "xfe" not in one


def test_records_that_name_no_file_are_passed_over(tmp_path):
    good = "a" * 64
    records = [
        {"path": "../up.gguf", "sha256": good},
        {"path": "/etc/x.gguf", "sha256": good},
        {"path": "nul\0.gguf", "sha256": good},
        {"path": "x" * 9999 + ".gguf", "sha256": good},
        {"path": "unpinned.gguf", "sha256": "abc"},
        {"path": "config.json", "sha256": good},
        {"path": 3, "sha256": good},
        "text",
        {"path": "ok.gguf", "sha256": good.upper()},
        {"path": "ok.gguf", "sha256": good},
        {"path": "two.gguf", "sha256": good},
        {"path": "two.gguf", "sha256": "b" * 64},
    ]
    (tmp_path / "FORK.json").write_text(json.dumps({"files": records}))
    registry = Registry(str(tmp_path))
    assert [(source.file, source.sha256) for source in registry.pins()] == [("ok.gguf", good)]
    reasons = {problem.reason for problem in registry.problems()}
    assert reasons == {
        *(f"its record {i} has a path that is not a file name" for i in range(4)),
        "its record of 'unpinned.gguf' has no sha256 of 64 hex digits",
        "its records of 'two.gguf' contradict each other",
    }


def test_a_folder_that_is_not_there_has_no_models(tmp_path):
    registry = Registry(str(tmp_path / "none"))
    assert registry.pins() == registry.derived() == registry.problems() == []
    with pytest.raises(NotFound, match="no model is pinned"):
        registry.resolve("a")
    with pytest.raises(NotFound):
        registry.resolve(None)
    (tmp_path / "file").write_text("")
    assert [problem.file for problem in Registry(str(tmp_path / "file")).problems()] == ["file"]


HOSTILE = {
    "": "empty",
    "..": r"'\.\.'",
    "a..b": r"'\.\.'",
    "../a": "slash",
    "a/b": "slash",
    "registry/ns/name:tag": "slash",
    "a\\b": "slash",
    "a\0": r"'\\x00'",
    "a\n": r"'\\n'",
    "\x7f": r"'\\x7f'",
    "\ud800": "ud800",
    "\u202e": "u202e",
    "a" * 256: "has 256 characters",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_with_the_reason(tmp_path, name):
    pin(tmp_path, "a.gguf")
    for ask in (Registry(str(tmp_path)).resolve, derived_name):
        with pytest.raises(RequestError, match=HOSTILE[name]) as refusal:
            ask(name)
        assert refusal.value.status == 400 and len(refusal.value.message) < 400


@given(st.text(max_size=40))
def test_no_name_leads_out_of_the_folder(name):
    try:
        bare = derived_name(name)
    except RequestError:
        return
    assert bare == derived_name(bare) == checked_name(bare)
    path = os.path.join("/forks", f"{bare}.MODEL.json")
    assert os.path.normpath(path) == path and os.path.dirname(path) == "/forks" and not bare.startswith(".")


@given(st.text(max_size=300))
def test_any_text_is_a_name_or_one_sentence(name):
    try:
        Registry(None, PinnedFile("a", "a.gguf", "0" * 64, "f", None)).resolve(name)
    except BankmlError as error:
        assert error.status in (400, 404) and len(error.message) < 600 and error.message.isprintable()


@given(st.lists(st.sampled_from(["m", "M", "m-q1_0", "m-f16", "M-F16", "n-q4_k_m", "n"]), max_size=6))
def test_aliases_belong_to_one_file_each(stems):
    files = [f"{stem}.gguf" for stem in stems]
    found = aliases(files)
    for name, file in found.items():
        assert name in names(file)
        sharing = {other.lower() for other in files if name in names(other)}
        assert len(sharing) == 1 or names(file)[0] == name.removesuffix(":latest")
        assert file == next(other for other in files if other.lower() == file.lower())


def test_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("BANKML_FORKS", "/somewhere")
    assert default_folder() == "/somewhere"
    monkeypatch.delenv("BANKML_FORKS")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == str(tmp_path / ".local/share/bankml/forks")
