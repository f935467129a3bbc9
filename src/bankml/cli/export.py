"""`bankml export`: an answer's receipt as an in-toto statement in a DSSE envelope."""

import json
import time
from argparse import Namespace

from bankml.cli.check import read_answer, read_request, require_one_stdin
from bankml.cli.issuer import signing_key
from bankml.cli.output import write
from bankml.errors import Refused
from bankml.files import atomic_write


def export(arguments: Namespace) -> int:
    """Only a receipt that fits its request and answer, and whose own signature is by the same key, is exported."""
    from bankml.receipt.check import check
    from bankml.receipt.signature import signature_problems
    from bankml.signing.envelope import envelope, statement

    require_one_stdin(arguments.request, arguments.answer)
    key = signing_key(arguments.sign_key, arguments.sign_passphrase_file)
    checked = check(read_request(arguments.request), read_answer(arguments.answer))
    problems = list(checked.problems)
    if checked.receipt is not None and checked.receipt.get("signed") is not False:
        problems += signature_problems(checked.receipt, key.public, time.time())
    if problems or checked.receipt is None:
        raise Refused("; ".join(problems))
    try:
        made = envelope(statement(checked.receipt), key)
    except ValueError as error:
        raise Refused(f"the receipt has no canonical form: {error}") from None
    data = json.dumps(made).encode() + b"\n"
    if arguments.output is None:
        write(data)
    else:
        with atomic_write(arguments.output) as file:
            file.write(data)
    return 0
