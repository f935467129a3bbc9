"""A process group that does not outlive this process, however this process ends.

`--spawn` may name a wrapper script, so the engine can be a grandchild. Signals go to the group, and a guard, a small
shell in a group of its own, holds the read end of a pipe whose write end this process alone has: when this process ends
in any way, SIGKILL included, the guard reads the end of the pipe and kills the group. A program that leaves its group
(setsid) is not reached.
"""

import contextlib
import os
import signal
import subprocess
import time

_GUARD = 'read -r line; [ "$line" = done ] || kill -s KILL -- "-$1"'
_POLL = 0.02  # seconds between looks at a group that is to end


class ProcessGroup:
    """The group that `leader` leads. Raises OSError where the guard cannot be started."""

    def __init__(self, leader: int) -> None:
        self._id = leader
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "bankml-guard", str(leader)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,  # a terminal's Ctrl-C does not reach it
        )

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._id, number)

    def wait(self, seconds: float) -> bool:
        """Waits at most `seconds` until no process of the group is left; whether none is."""
        until = time.monotonic() + seconds
        while self._exists():
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL)
        return True

    def release(self) -> None:
        """The group has ended: its number may be another's from now on."""
        with contextlib.suppress(OSError):
            self._guard.communicate(b"done\n", timeout=1)

    def _exists(self) -> bool:
        try:
            os.killpg(self._id, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
