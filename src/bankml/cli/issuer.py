"""`--sign-key`, `--log` and the options beside them: what becomes of receipts."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bankml.cli.output import note
from bankml.errors import UsageError
from bankml.receipt.issuer import Issuer

if TYPE_CHECKING:
    from bankml.api.metrics_middleware import InstrumentedApp
    from bankml.signing.keys import SigningKey
    from bankml.transparency.writer import LogWriter


@dataclass(frozen=True)
class Receipts:
    """What becomes of receipts: who issues them, and the log that has them, if there is one."""

    issuer: Issuer
    writer: "LogWriter | None" = None

    def beside(self, application: "InstrumentedApp") -> "InstrumentedApp":
        """`application`, and the log below /bankml/log/."""
        if self.writer is None:
            return application
        from bankml.api.log_routes import LogRoutes

        return LogRoutes(application, self.writer)


@contextmanager
def receipts_of(arguments: Namespace) -> Iterator[Receipts]:
    """What the options describe, for the `with` block. Raises UsageError, FileProblem, Refused."""
    key = _key_of(arguments)
    if arguments.log is None:
        for option in ("log_sync", "log_optional"):
            if getattr(arguments, option):
                raise UsageError(f"--{option.replace('_', '-')} has no effect without --log")
        yield Receipts(Issuer(key, arguments.sign_days))
        return
    from bankml.transparency.note import verifier_key
    from bankml.transparency.receipts import ReceiptLog
    from bankml.transparency.writer import LogSync, LogWriter

    writer = LogWriter(arguments.log, key, LogSync(arguments.log_sync or LogSync.ALWAYS))
    note(f"log: {arguments.log} is {writer.origin}, with {writer.size} entries")
    if key is not None:
        note(f"log: its key, for readers: {verifier_key(writer.origin, key.public)}")
    issuer = Issuer(key, arguments.sign_days, log=ReceiptLog(writer, arguments.log_optional))
    try:
        yield Receipts(issuer, writer)
    finally:
        issuer.close()


def issuer_of(arguments: Namespace) -> Issuer:
    """The issuer of `generate`, which has no log. Raises UsageError, FileProblem."""
    return Issuer(_key_of(arguments), arguments.sign_days)


def _key_of(arguments: Namespace) -> "SigningKey | None":
    if arguments.sign_key is not None:
        return signing_key(arguments.sign_key, arguments.sign_passphrase_file)
    for option in ("sign_passphrase_file", "sign_days"):
        if getattr(arguments, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} has no effect without --sign-key")
    return None


def signing_key(path: str, passphrase_file: str | None) -> "SigningKey":
    """The private key at `path`. The passphrase of an encrypted one comes from the file or from the terminal: an
    argument or an environment variable would show it to other processes. Raises UsageError, FileProblem."""
    from bankml.signing.keys import SigningKey, passphrase_in

    def passphrase() -> bytes:
        return typed_passphrase(path) if passphrase_file is None else passphrase_in(passphrase_file)

    return SigningKey.read(path, passphrase)


def typed_passphrase(path: str, *, twice: bool = False) -> bytes:
    """A passphrase from the terminal, which does not show it. Raises UsageError where there is none."""
    from getpass import getpass

    if not sys.stdin.isatty():
        raise UsageError(f"{path} needs a passphrase, and there is no terminal to type it at: give a passphrase file")
    typed = getpass(f"passphrase of {path}: ")
    if not typed:
        raise UsageError("the passphrase is empty")
    if twice and getpass("the same again: ") != typed:
        raise UsageError("the two passphrases differ")
    return typed.encode()
