"""What the C API costs: opening a model above hashing it, two handles beside one, and what fifty rounds leave behind.

    python -m benchmarks.capi MODEL.gguf [--fork F] [--rounds 5] [--tokens 48] [--memcheck]

Opening is measured in fresh processes, in turn with hashing the same file as opening does it; the file is in the page
cache for both. The target: at most 0.5 s above hashing. Two handles, each with one thread of its own, answer at the
same time, in turn with one alone; printed is how many tokens both make in the time in which one makes its own. The
target: 1.6 times as many on two cores. Both mean something only while nothing else wants the cores.

--memcheck runs tests/capi/programs/rounds.c under valgrind for 10 and for 50 rounds, which takes minutes.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BANKML = Path(sys.executable).parent / "bankml"
PROGRAM = r"""
#include <bankml.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *request;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void quiet(int level, const char *msg, size_t len, void *user) { (void)level, (void)msg, (void)len, (void)user; }
static void *ask(void *handle) {
    if (bankml_chat(handle, request, NULL, NULL, NULL) != BANKML_OK) abort();
    return NULL;
}
/* MODEL FORK ROUNDS REQUEST: seconds of opening, then a line a round: one handle alone, both at once. */
int main(int argc, char **argv) {
    bankml_set_log(quiet, NULL);
    double began = now();
    bankml_t *one = bankml_open(argv[1], argv[2], 1024, NULL);
    printf("%f\n", now() - began);
    int rounds = atoi(argv[3]);
    if (one == NULL || argc != 5) return 1;
    if (rounds == 0) return 0;
    bankml_t *two = bankml_open(argv[1], argv[2], 1024, NULL);
    request = argv[4];
    ask(one), ask(two);
    for (int i = 0; i < rounds; ++i) {
        pthread_t threads[2];
        double alone = now();
        ask(one);
        alone = now() - alone;
        double both = now();
        pthread_create(&threads[0], NULL, ask, one);
        pthread_create(&threads[1], NULL, ask, two);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        both = now() - both;
        printf("%f %f\n", alone, both);
    }
    return 0;
}
"""


def compile_program(source: Path, output: Path) -> Path:
    said = subprocess.run([BANKML, "capi", "--cflags", "--libs"], check=True, capture_output=True, text=True).stdout
    subprocess.run(["cc", "-O2", source, *said.split(), "-lpthread", "-o", output], check=True)
    return output


def hashing(path: Path) -> float:
    """Seconds in which the file is read and hashed, a MiB at a time."""
    began, buffer, digest = time.perf_counter(), bytearray(1 << 20), hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while size := file.readinto(buffer):
            digest.update(memoryview(buffer)[:size])
    return time.perf_counter() - began


def opening(program: Path, model: Path, fork: str, rounds: int) -> None:
    above = []
    for _ in range(rounds):
        hashed = hashing(model)
        done = subprocess.run([program, model, fork, "0", ""], check=True, capture_output=True, text=True)
        above.append((float(done.stdout) - hashed, hashed))
    extra, hashed = statistics.median(above), statistics.median(one for _, one in above)
    print(f"cold bankml_open: {extra[0]:.3f} s above hashing ({hashed:.3f} s), at most {max(above)[0]:.3f} s")


def two_handles(program: Path, model: Path, fork: str, rounds: int, tokens: int) -> None:
    body = {"messages": [{"role": "user", "content": "Tell me of rain."}], "max_tokens": tokens, "temperature": 0}
    request = json.dumps({**body, "ignore_eos": True})
    environment = {**os.environ, "BANKML_THREADS": "1"}
    command = [program, model, fork, str(rounds), request]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    pairs = [tuple(map(float, line.split())) for line in done.stdout.splitlines()[1:]]
    ratios = sorted(2 * alone / both for alone, both in pairs)
    shown = f"{ratios[0]:.2f} / {statistics.median(ratios):.2f} / {ratios[-1]:.2f}"
    print(f"two handles make {shown} times the tokens of one (min / median / max of {rounds} rounds)")


def memcheck(folder: Path) -> None:
    sys.path.insert(0, str(ROOT))
    from tests.tiny_model import tiny_model

    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit("no valgrind")
    verified = tiny_model(folder, n_layer=1)
    program = compile_program(ROOT / "tests/capi/programs/rounds.c", folder / "rounds")
    how = [f"--suppressions={ROOT / 'tests/capi/memcheck.supp'}", "--leak-check=full", "--show-leak-kinds=definite"]
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "BANKML_THREADS": "1", "BANKML_CACHE_RAM": "16"}
    for rounds in (10, 50):
        command = [valgrind, *how, "--errors-for-leak-kinds=definite", program, verified.path, verified.fork_path]
        done = subprocess.run([*command, str(rounds)], check=True, capture_output=True, text=True, env=environment)
        told = [line.split("== ", 1)[1].strip() for line in done.stderr.splitlines() if "==" in line]
        kept = [line for line in told if line.startswith(("in use at exit", "definitely lost", "ERROR SUMMARY"))]
        print(f"memcheck, {rounds} rounds: {'; '.join(kept) or 'no leak at all'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--fork")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--memcheck", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "program.c"
        source.write_text(PROGRAM)
        program, fork = (
            compile_program(source, Path(folder) / "program"),
            arguments.fork or f"{arguments.model}.FORK.json",
        )
        opening(program, arguments.model, fork, arguments.rounds)
        two_handles(program, arguments.model, fork, arguments.rounds, arguments.tokens)
        if arguments.memcheck:
            memcheck(Path(folder))


if __name__ == "__main__":
    main()
