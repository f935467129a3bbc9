"""`bankml usage`: the data of `GET /bankml/usage`, for this machine and the given processes."""

import json
from argparse import Namespace

from bankml.cli.output import write


def usage(arguments: Namespace) -> int:
    from bankml.measure.usage import measure, watch

    found = measure(watch(arguments.pids)).as_json()
    write(json.dumps(found, indent=1).encode() + b"\n")
    return 0
