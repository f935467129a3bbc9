"""`bankml log`: proofs and checks of a receipt log, by its files alone."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bankml.api.reading.plain_input import text_in
from bankml.cli.check import read_answer
from bankml.cli.output import say, write
from bankml.errors import Refused
from bankml.files import atomic_write

if TYPE_CHECKING:
    from bankml.signing.keys import PublicKey
    from bankml.transparency.reader import LogReader


def log(arguments: Namespace) -> int:
    commands: Mapping[str, Callable[[Namespace], int]] = {
        "prove": _prove,
        "verify": _verify,
        "verify-proof": _verify_proof,
        "consistency": _consistency,
    }
    return commands[arguments.what](arguments)


def _prove(arguments: Namespace) -> int:
    from bankml.transparency.checking import prove

    data = prove(_reader(arguments), _receipt(arguments.receipt)).text.encode()
    if arguments.output is None:
        write(data)
    else:
        with atomic_write(arguments.output) as file:
            file.write(data)
    return 0


def _verify(arguments: Namespace) -> int:
    checkpoint = _reader(arguments).verify()
    say(f"the log {checkpoint.origin} is valid: {checkpoint.size} entries have the root {checkpoint.root.hex()}")
    return 0


def _verify_proof(arguments: Namespace) -> int:
    from bankml.transparency.checking import verify_proof

    receipt, text = _receipt(arguments.receipt), text_in(read_answer(arguments.proof))
    checkpoint = verify_proof(receipt, text, _key(arguments))
    say(f"the receipt is in the log {checkpoint.origin}, which had {checkpoint.size} entries")
    return 0


def _consistency(arguments: Namespace) -> int:
    reader = _reader(arguments)
    old, new = (reader.checked(text_in(read_answer(path)), path) for path in (arguments.old, arguments.new))
    reader.require_consistent(old, new)
    say(f"the log {new.origin} is consistent: its {new.size} entries begin with the {old.size} of the old checkpoint")
    return 0


def _reader(arguments: Namespace) -> "LogReader":
    from bankml.transparency.checking import reader_of

    return reader_of(arguments.log, _key(arguments))


def _key(arguments: Namespace) -> "PublicKey | None":
    from bankml.signing.keys import PublicKey

    return None if arguments.key is None else PublicKey.read(arguments.key)


def _receipt(path: str) -> Mapping[str, object]:
    """The receipt in a file, which has it alone or with its answer. Raises Refused."""
    from bankml.receipt.check import receipts_in

    data = read_answer(path)
    try:
        found = receipts_in(data)
    except ValueError as error:
        raise Refused(f"{path} has no receipt: {error}") from None
    if len(found) != 1:
        raise Refused(f"{path} has {len(found)} receipts, not one")
    return found[0]
