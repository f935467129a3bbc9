"""Every command by the same rules: help with one example, mistakes on one line; and what a shell completes."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bankml import __version__
from bankml.cli import main
from bankml.cli.parser import build_parser
from bankml.convert.dequantize import READABLE

COMMANDS = next(iter(build_parser()._subparsers._group_actions)).choices


def help_of(words, capsys):
    with pytest.raises(SystemExit) as end:
        main([*words, "--help"])
    assert end.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_the_commands_are_all_in_the_help(capsys):
    assert set(re.findall(r"^    ([a-z0-9-]+)(?: |$)", help_of([], capsys), re.M)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_one_example_that_can_be_parsed(name, capsys):
    lines = help_of([name], capsys).splitlines()
    examples = [i for i, line in enumerate(lines) if line.startswith("example: ")]
    assert len(examples) == 1
    words = " ".join(lines[examples[0] :]).removeprefix("example: bankml ")
    arguments = build_parser().parse_args(re.split(r" <+ | > ", words)[0].split())
    assert arguments.function == name.replace("-", "_")


@pytest.mark.parametrize("words", [["version"], ["--version"], ["--version", "guard"]])
def test_the_version_is_told_either_way(words, capfd):
    try:
        assert main(words) == 0
    except SystemExit as end:
        assert end.code == 0
    assert capfd.readouterr() == (f"bankml {__version__}\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_exit_1_and_one_line(name, capfd):
    assert main([name, "--no-such-option"]) == 1
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("guard", "nowhere"),
        ("guard", "nowhere", "--json"),
        ("sha256", "nowhere"),
        ("pin", "nowhere", "--fork", "F"),
        ("pin", "nowhere", "--fork", "F", "--record"),
        ("verify", "nowhere", "--fork", "F"),
        ("verify", "nowhere", "--fork", "F", "--json"),
        ("convert", "nowhere", "-o", "out", "--outtype", "f16"),
        ("check", "nowhere", "nowhere"),
        ("tokenize", "nowhere"),
        ("chat-template", "nowhere"),
        ("serve", "nowhere", "--fork", "F", "--native"),
        ("serve", "nowhere", "--native"),
        ("serve", "nowhere", "--spawn", "llama-server"),
    ],
)
def test_a_missing_file_is_exit_1_and_named(words, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "F").write_text("{}")
    assert main(words) == 1
    out, err = capfd.readouterr()
    assert (out, err) == ("", "error: cannot read nowhere: no such file or directory\n")


def test_the_types_that_convert_reads_are_documented():
    *names, last = (row.name for row in READABLE)
    assert f"{', '.join(names)} and {last};" in (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


def test_usage(capfd):
    assert main(["usage", str(os.getpid())]) == 0
    (process,) = json.loads(capfd.readouterr().out)["processes"]
    assert process["pid"] == os.getpid() and process["rss_bytes"] > 0
    for pid in ("0", "-1", "x", str((1 << 31) - 1)):
        assert main(["usage", "--", pid]) == 1
        out, err = capfd.readouterr()
        assert out == "" and pid in err and err.count("\n") == 1


# completion


def completions(folder, *words):
    """What bash offers for the last of `words`."""
    code = """
    source bankml.bash
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
    complete=$(complete -p bankml | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    $complete bankml "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    ran = subprocess.run(["bash", "-c", code, "bash", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return set(ran.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path, capfd):
    assert main(["completion", "bash"]) == 0
    (tmp_path / "bankml.bash").write_text(capfd.readouterr().out)
    (tmp_path / "model.gguf").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    assert set(COMMANDS) <= completions(tmp_path, "bankml", "")
    assert completions(tmp_path, "bankml", "ch") == {"check", "chat-template"}
    assert {"--fork", "--json"} <= completions(tmp_path, "bankml", "verify", "--")
    assert completions(tmp_path, "bankml", "guard", "m.gguf", "--engine", "") == {"mainline", "prism"}
    assert "model.gguf" in completions(tmp_path, "bankml", "guard", "mod")
    assert completions(tmp_path, "bankml", "completion", "") >= {"bash", "zsh", "fish"}
    assert not completions(tmp_path, "bankml", "serve", "m.gguf", "--slot-dir", "mod")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_can_read_theirs(shell, tmp_path, capfd):
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capfd.readouterr().out)
    assert all(name in script.read_text() for name in COMMANDS)
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} to read it")
    assert subprocess.run([shell, "-n", str(script)], capture_output=True, check=True).stderr == b""


def test_bankml_itself_is_light():
    code = "import sys, bankml; print(sorted(name for name in sys.modules if name.startswith('bankml')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['bankml']\n"
