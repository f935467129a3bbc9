"""`bankml usage`: what `GET /bankml/usage` answers, of this machine and of the processes that are named."""

import json
from argparse import Namespace


def usage(arguments: Namespace) -> int:
    from bankml.measure.usage import measure, watch

    print(json.dumps(measure(watch(arguments.pids)).as_json(), indent=1), flush=True)
    return 0
