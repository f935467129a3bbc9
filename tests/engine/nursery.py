"""Starts servers quickly: everything is imported once, and every line on stdin forks a server that is then ready.

    python -m tests.engine.nursery MODEL.gguf FORK.json SLOT_DIR

For each line it prints `PID GATEWAY_PORT ENGINE_PORT` of a server with a slot folder, and ends with its stdin.
"""

import io
import os
import signal
import sys

from bankml.api.routes import Serving, build_application
from bankml.gate.verify import verify
from bankml.http.server import serve
from bankml.library import load as _everything_an_answer_needs  # noqa: F401
from bankml.library.load import LoadOptions


def main(model, fork, slot_dir):
    verified = verify(model, fork)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever is killed leaves no zombie
    for _ in sys.stdin:
        if os.fork() == 0:
            application = build_application(verified, LoadOptions(8192, 1), Serving(slot_dir=slot_dir))
            serve(application, ("127.0.0.1", 0), ("127.0.0.1", 0), ready=announce, log=io.StringIO())
            os._exit(0)


def announce(listening):
    print(os.getpid(), listening.gateway[1], listening.engine[1], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
