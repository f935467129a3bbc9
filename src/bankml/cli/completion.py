"""`bankml completion`: a shell completion script, made from the argument parser by shtab."""

import argparse
import re
from argparse import Namespace
from collections.abc import Iterator

from bankml.cli.output import write
from bankml.cli.parser import build_parser

FILE = re.compile(r"FILE|MODEL|LLAMA_SERVER|MODELFILE|.+\.(?:json|gguf)")
FOLDER = "DIR"
"""Metavars of arguments that are paths."""


def completion(arguments: Namespace) -> int:
    import shtab

    parser = build_parser()
    for action in _actions(parser):
        if isinstance(action.metavar, str) and FILE.fullmatch(action.metavar):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == FOLDER:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    write(shtab.complete(parser, arguments.shell).encode() + b"\n")
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every option and argument of `parser` and its commands; argparse has no public list of them."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
