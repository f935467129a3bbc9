"""`bankml version`, which needs nothing: not even the parser of the command line."""

from bankml import __version__
from bankml.cli.output import say


def version(arguments: object = None) -> int:
    say(f"bankml {__version__}")
    return 0
