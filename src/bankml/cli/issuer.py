"""`--sign-key` and the options beside it: what becomes of receipts."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from bankml.errors import UsageError
from bankml.receipt.issuer import UNSIGNED, Issuer

if TYPE_CHECKING:
    from bankml.signing.keys import SigningKey


def issuer_of(arguments: Namespace) -> Issuer:
    """The issuer that the options describe. Raises UsageError, FileProblem."""
    if arguments.sign_key is None:
        for option in ("sign_passphrase_file", "sign_days"):
            if getattr(arguments, option) is not None:
                raise UsageError(f"--{option.replace('_', '-')} has no effect without --sign-key")
        return UNSIGNED
    return Issuer(signing_key(arguments.sign_key, arguments.sign_passphrase_file), arguments.sign_days)


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
