"""`bankml create`."""

import os
from argparse import Namespace

from bankml.cli.output import note, progress_bar, say
from bankml.cli.stdin import STDIN
from bankml.cli.stdin import read_bytes as stdin


def create(arguments: Namespace) -> int:
    from bankml.convert.create import Folders
    from bankml.convert.create import create as make
    from bankml.library.json_file import read_bytes
    from bankml.library.modelfile import MOST_BYTES, read_modelfile
    from bankml.library.reference import Derived
    from bankml.library.registry import default_folder

    raw = stdin(MOST_BYTES) if arguments.file == STDIN else read_bytes(arguments.file, MOST_BYTES)
    modelfile = read_modelfile(raw)
    registry = os.path.abspath(arguments.registry or default_folder())
    folders = Folders(
        modelfile=os.path.dirname(os.path.abspath(arguments.file)),
        registry=registry,
        models=os.path.abspath(arguments.models) if arguments.models else registry,
    )
    made = make(arguments.name, modelfile, folders, note, progress_bar)
    if isinstance(made, Derived):
        say(f"{made.name} is derived from {made.base.name}: {made.path}")
    else:
        say(f"{made.name} is ready: {made.path}")
    return 0
