"""`bankml version`, which imports nothing: not even the argument parser."""

from bankml import __version__
from bankml.cli.output import say


def version(arguments: object = None) -> int:
    say(f"bankml {__version__}")
    return 0
