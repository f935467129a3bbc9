"""How long `bankml version` and `bankml --help` take, beside a Python that does nothing.

    python -m benchmarks.command_line [--rounds 20] [--bankml PATH]

Wall-clock time from starting the process to its end, the three commands in turn. `--bankml` is another installation's
script: of an editable one, the part that finds the sources counts too.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

LIMITS_MS = {"version": 60, "--help": 100}


def milliseconds(command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--bankml", metavar="PATH", type=Path, default=Path(sys.executable).with_name("bankml"))
    arguments = parser.parse_args()
    python = arguments.bankml.with_name("python")
    commands = {"python -c pass": [python, "-c", "pass"]}
    commands |= {f"bankml {word}": [arguments.bankml, word] for word in LIMITS_MS}
    for command in commands.values():
        milliseconds(command)
    times = {name: [] for name in commands}
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            times[name].append(milliseconds(command))
    nothing = statistics.median(times["python -c pass"])
    print(f"{'':16} median ms  least  ratio   limit")
    for name, found in times.items():
        median = statistics.median(found)
        limit = LIMITS_MS.get(name.removeprefix("bankml "), "")
        print(f"{name:16} {median:9.1f} {min(found):6.1f} {median / nothing:6.2f} {limit!s:>7}")


if __name__ == "__main__":
    main()
