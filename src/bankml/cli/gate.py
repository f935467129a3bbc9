"""`bankml guard | sha256 | pin | verify`."""

import json
import os
import re
from argparse import Namespace

from bankml.cli.output import file_bar, say
from bankml.errors import Refused, Truncated, UsageError, one_line

TYPE_CHECKING = False

if TYPE_CHECKING:
    from bankml.gguf.header import Header


def guard(arguments: Namespace) -> int:
    from bankml.gate.guard import guard as judge

    verdict = judge(arguments.file, arguments.engine)
    if arguments.json:
        say(json.dumps(verdict.as_json() | _native(verdict.header if verdict.kind == "play" else None)))
        return 0 if verdict.kind == "play" else verdict.error().exit_code
    if verdict.kind != "play":
        raise verdict.error()
    report = verdict.as_json()
    types = report["types"]
    counts = ", ".join(f"{count} {name}" for name, count in types.items()) if isinstance(types, dict) else ""
    say(
        f"play: {verdict.name}: GGUF v{report['gguf_version']}, {report['arch'] or 'no architecture'}, "
        f"{report['tensors']} tensors{f' ({counts})' if counts else ''}, engine {verdict.engine}"
    )
    return 0


def _native(header: "Header | None") -> dict[str, object]:
    """Which of the file's tensors the native engine computes with."""
    from bankml.library.supported import native_report

    return {} if header is None else {"native": native_report(header)}


def sha256(arguments: Namespace) -> int:
    from bankml.gate.digest import sha256_file

    with file_bar("hashing", arguments.file) as progress:
        digest = sha256_file(arguments.file, progress)
    say(f"{digest}  {arguments.file}")
    return 0


def pin(arguments: Namespace) -> int:
    from bankml.gate.verify import pin as compare
    from bankml.gate.verify import record

    expected = arguments.sha256
    if expected is not None and not arguments.record:
        raise UsageError("--sha256 says what to record: give --record with it")
    if expected is not None and not re.fullmatch("[0-9a-fA-F]{64}", expected):
        raise UsageError(f"--sha256 {expected} is not 64 hex digits")
    with file_bar("hashing", arguments.file) as progress:
        if not arguments.record:
            found = compare(arguments.file, arguments.fork, progress)
            say(f"{found.name} sha256 {found.sha256}: as pinned")
            return 0
        found = record(arguments.file, arguments.fork, expected.lower() if expected else None, progress)
    how = "as given" if expected else "trust on first use: no other source confirms it"
    say(f"{found.name} sha256 {found.sha256}: recorded in {os.fspath(arguments.fork)} ({how})")
    return 0


def verify(arguments: Namespace) -> int:
    from bankml.gate.verify import verify as check

    try:
        with file_bar("hashing", arguments.file) as progress:
            verified = check(arguments.file, arguments.fork, progress)
    except (Refused, Truncated) as error:
        if not arguments.json:
            raise
        kind = "need_more" if isinstance(error, Truncated) else "refuse"
        report: dict[str, object] = {"verdict": kind, "reasons": [one_line(error.message)]}
        if isinstance(error, Truncated):
            report["need_bytes"] = error.needs
        say(json.dumps(report))
        return error.exit_code
    if arguments.json:
        extra = {"file": verified.name, "bytes": verified.identity.size, "sha256": verified.sha256}
        say(json.dumps({**verified.verdict.as_json(), **_native(verified.header), **extra}))
    else:
        say(f"play: {verified.name}: guard plays it, sha256 {verified.sha256} as pinned")
    return 0
