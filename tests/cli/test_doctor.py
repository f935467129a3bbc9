"""`bankml doctor`: everything that a report needs, and nothing that somebody would rather keep."""

import json
import os
import platform

import pytest

from bankml import __version__, _native
from bankml.cli import main
from tests.tiny_model import tiny_model


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    folder = tmp_path_factory.mktemp("registry-of-somebody")
    (folder / "broken.FORK.json").write_text("{")
    return tiny_model(folder), folder


def told(capfd, *words):
    assert main(["doctor", *words]) == 0
    return capfd.readouterr().out


def test_what_it_says(capfd, registry, monkeypatch):
    verified, folder = registry
    monkeypatch.setenv("BANKML_THREADS", "3")
    found = json.loads(told(capfd, "--json", "--registry", str(folder)))
    assert found["bankml"] == __version__
    assert platform.python_version() in found["python"]
    assert _native.kernel_set() in found["kernels"]
    assert any(line.startswith("numpy ") for line in found["packages"])
    assert "BANKML_THREADS" in found["environment"]
    assert f"{verified.name} sha256 {verified.sha256}" in found["pinned"]
    assert any(line.startswith("skipped: broken.FORK.json: ") for line in found["pinned"])
    text = told(capfd, "--registry", str(folder))
    for value in found.values():
        for line in value if isinstance(value, list) else [value]:
            if "available" not in line:  # which changes meanwhile
                assert line in text


def test_paths_are_told_only_where_they_are_wanted(capfd, registry, monkeypatch):
    _, folder = registry
    monkeypatch.setenv("BANKML_ORACLE", "/home/somebody/secret")
    home = os.path.expanduser("~")
    for words in (["--registry", str(folder)], ["--registry", str(folder / "missing")], []):
        text = told(capfd, *words)
        assert "secret" not in text and str(folder) not in text and f"{home}/" not in text, text
    text = told(capfd, "--paths")
    assert "BANKML_ORACLE=/home/somebody/secret" in text and "bankml" in text


def test_a_module_that_is_missing_is_told(capfd, monkeypatch):
    monkeypatch.setattr("bankml.cli.doctor.find_spec", lambda name: None)
    assert "the native module is missing" in told(capfd)
