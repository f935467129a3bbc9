"""`bankml keygen`: makes a key that signs receipts."""

from argparse import Namespace

from bankml.cli.issuer import typed_passphrase
from bankml.cli.output import say
from bankml.errors import UsageError


def keygen(arguments: Namespace) -> int:
    from bankml.signing.keys import generate, passphrase_in, require_new

    if arguments.passphrase and arguments.passphrase_file is not None:
        raise UsageError("--passphrase and --passphrase-file exclude each other: give one of them")
    require_new(arguments.path)
    passphrase = None
    if arguments.passphrase:
        passphrase = typed_passphrase(arguments.path, twice=True)
    elif arguments.passphrase_file is not None:
        passphrase = passphrase_in(arguments.passphrase_file)
    made = generate(arguments.path, passphrase)
    say(f"key_id: {made.key_id}")
    say(f"private: {made.private} (mode 0600, {'not ' if passphrase is None else ''}encrypted)")
    say(f"public: {made.public}")
    return 0
