"""What the argument parser is made of: a parser with one-line errors, and numbers with a range."""

import argparse
import os
import re
import sys
from collections.abc import Callable

from bankml.cli.output import write
from bankml.errors import UsageError

TYPE_CHECKING = False
"""True for type checkers; importing it from typing would take longer than this module."""

if TYPE_CHECKING:
    from typing import NoReturn

WHOLE = re.compile("[-+]?[0-9]+", re.ASCII)
"""int() would accept 1_000 and the digits of every script."""

POOLINGS = ("none", "mean", "cls", "last", "rank")


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, like every error here."""

    def error(self, message: str) -> "NoReturn":
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Reports unknown arguments with the command's own usage: argparse leaves it to the main parser."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _print_message(self, message: str, file: object = None) -> None:
        """argparse's own version ignores a stdout that cannot be written."""
        write(message.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


class Formatter(argparse.HelpFormatter):
    """argparse's formatter imports a slow module for the terminal's width; this one does not."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=max(_columns(), 40) - 2)


def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


Command = Callable[[str, str, str, str], Parser]
"""name, module, help, example"""


def whole_number(text: str) -> int:
    """Raises ValueError for what is not a whole number."""
    if not WHOLE.fullmatch(text):
        raise ValueError(text)
    return int(text)


whole_number.__name__ = "whole number"  # shown by argparse: invalid whole number value: 'x'


def from_1_to(most: int) -> Callable[[str], int]:
    """A reader of whole numbers from 1 to `most`."""

    def number(text: str) -> int:
        value = whole_number(text)
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is out of range: 1 to {most}")
        return value

    number.__name__ = whole_number.__name__
    return number


def prompt_options(parser: argparse._ActionsContainer, when: str = "") -> None:
    """The options that decide how a model's prompts are made."""
    parser.add_argument(
        "--content-special",
        choices=("parse", "refuse", "escape"),
        help=f"{when}texts of control tokens in a message's content: tokenized as control tokens (parse, as in"
        " llama-server), refused, or tokenized as plain text (escape)",
    )
    parser.add_argument(
        "--reasoning",
        choices=("off", "on", "auto"),
        help="whether models that can reason do, unless a request says otherwise (auto, which is on)",
    )
