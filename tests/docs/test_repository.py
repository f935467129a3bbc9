"""The files that a stranger finds first: what they name exists, and what runs elsewhere calls what runs here."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = (ROOT / "pyproject.toml").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))


def test_contributing_names_what_exists():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    paths = set(re.findall(r"`((?:src|native|tests|docs)/[\w./-]+|CMakeLists\.txt)`", page))
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert set(re.findall(r"make ([a-z-]+)", page)) <= TARGETS


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "README.md"])
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    assert links and [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_exist(path):
    found = yaml.safe_load(path.read_text())
    assert {"name", "jobs", "permissions"} <= set(found) and True in found  # YAML reads the key `on` as true
    for name, job in found["jobs"].items():
        assert job["runs-on"] and job["steps"][0]["uses"].startswith("actions/checkout@"), name
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert commands, name
        for command in commands:
            assert re.fullmatch(r"make ([a-z-]+)", command) and command.removeprefix("make ") in TARGETS, command


def test_every_version_that_is_tested_is_declared():
    classifiers = set(
        re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    )
    matrix = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())["jobs"]["test"]["strategy"]["matrix"]
    assert classifiers == set(matrix["python"])


def test_other_files_can_be_read():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert {hook["id"] for repo in hooks["repos"] for hook in repo["hooks"]} >= {"ruff", "mypy", "clang-format"}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    version = re.search(r'^version = "(.+)"', PROJECT, re.M)[1]
    assert (citation["version"], citation["cff-version"]) == (version, "1.2.0")
    for name in (".github/ISSUE_TEMPLATE/bug.md", ".github/ISSUE_TEMPLATE/wish.md"):
        _, front, _ = (ROOT / name).read_text().split("---\n", 2)
        assert set(yaml.safe_load(front)) == {"name", "about"}


def test_the_service_and_the_container_use_options_that_exist():
    from bankml.cli.parser import build_parser

    unit = (ROOT / "packaging/bankml.service").read_text()
    words = re.search(r"^ExecStart=%h/.local/bin/bankml (.+)$", unit, re.M)[1].replace("%h", "/home/x").split()
    assert build_parser().parse_args(words).native
    page = (ROOT / "docs/deploy.md").read_text()
    words = re.search(r"bankml (serve /models/.+)$", page, re.M)[1].split()
    assert build_parser().parse_args(words).native
