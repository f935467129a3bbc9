"""The commands and options about what a third party can check: receipts, answers, keys, signatures and the log."""

from bankml.cli.arguments import Command, Formatter, Parser, from_1_to
from bankml.model.limits import MAX_THREADS

MAX_DAYS = 36_500


def add_proof_commands(command: Command) -> None:
    check = command(
        "check",
        "check",
        "check an answer's receipt against its request",
        "check request.json answer.json --model m.gguf --key bankml.key.pub.pem",
    )
    check.add_argument("request", metavar="REQUEST.json", help="the request's body as sent (-: stdin)")
    check.add_argument("answer", metavar="ANSWER.json", help="the response's body, streamed or not (-: stdin)")
    check.add_argument("--model", metavar="FILE", help="compare the receipt's model_sha256 with this file")
    check.add_argument("--key", metavar="PUB.pem", help="require a signature by this key")

    replay = command(
        "replay",
        "replay",
        "compute an answer again from the model's file, and compare",
        "replay request.json answer.json --model m.gguf",
    )
    replay.add_argument("request", metavar="REQUEST.json", help="the request's body as sent (-: stdin)")
    replay.add_argument("answer", metavar="ANSWER.json", help="the response's body, streamed or not (-: stdin)")
    replay.add_argument("--model", metavar="FILE", help="the model's file")
    replay.add_argument("--fork", metavar="FORK.json", help="its file of records (default: FILE.FORK.json)")
    replay.add_argument("--registry", metavar="DIR", help="a folder of records, for files by sha256 and derived models")
    replay.add_argument("--threads", metavar="N", type=from_1_to(MAX_THREADS), help="threads (one per core)")
    replay.add_argument("--json", action="store_true", help="print the verdict as one JSON object")

    keygen = command("keygen", "keygen", "make a key that signs receipts", "keygen bankml.key --passphrase")
    keygen.add_argument("path", metavar="PATH", help="the private key's file; the public one is PATH.pub.pem beside it")
    keygen.add_argument("--passphrase", action="store_true", help="encrypt it with a passphrase typed at the terminal")
    keygen.add_argument("--passphrase-file", metavar="FILE", help="encrypt it with the first line of FILE (mode 0600)")

    export = command(
        "export",
        "export",
        "write a receipt as an in-toto statement in a DSSE envelope",
        "export request.json answer.json --sign-key bankml.key -o answer.intoto.json",
    )
    export.add_argument("request", metavar="REQUEST.json", help="the request's body as sent (-: stdin)")
    export.add_argument("answer", metavar="ANSWER.json", help="the response's body, streamed or not (-: stdin)")
    export.add_argument("--sign-key", metavar="FILE", required=True, help="sign the envelope with this private key")
    export.add_argument("--sign-passphrase-file", metavar="FILE", help="the key's passphrase is the first line of FILE")
    export.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: stdout)")
    _log_commands(command)


def _log_commands(command: Command) -> None:
    log = command(
        "log", "log", "prove and verify what a receipt log has", "log prove answer.json --log DIR -o answer.tlog-proof"
    )
    kinds = log.add_subparsers(title="commands", metavar="WHAT", dest="what", required=True, parser_class=Parser)

    def kind(name: str, help_: str, *, of_log: bool = True) -> Parser:
        added: Parser = kinds.add_parser(
            name, help=help_, description=help_, allow_abbrev=False, formatter_class=Formatter
        )
        if of_log:
            added.add_argument(
                "--log",
                metavar="DIR",
                required=True,
                help="the log's folder, or its URL: http://127.0.0.1:18093/bankml/log",
            )
        added.add_argument("--key", metavar="PUB.pem", help="require checkpoints signed by this key")
        return added

    prove = kind("prove", "print the proof that the log has a receipt")
    prove.add_argument("receipt", metavar="RECEIPT", help="a receipt, or the answer that has it (-: stdin)")
    prove.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: stdout)")
    kind("verify", "compute every hash of the log anew, from its entries")
    proof = kind("verify-proof", "verify a proof, without the log", of_log=False)
    proof.add_argument("receipt", metavar="RECEIPT", help="a receipt, or the answer that has it (-: stdin)")
    proof.add_argument("proof", metavar="PROOF", help="what `log prove` printed")
    consistency = kind("consistency", "show that the log of a checkpoint begins with that of an older one")
    consistency.add_argument("old", metavar="OLD", help="the older checkpoint")
    consistency.add_argument("new", metavar="NEW", help="the newer one")


def log_options(parser: Parser) -> None:
    parser.add_argument("--log", metavar="DIR", help="record every receipt in the append-only log in DIR")
    parser.add_argument(
        "--log-sync",
        choices=("always", "every-second"),
        help="with --log: when a receipt is on the disk: before its answer ends (always, the default), or within a"
        " second",
    )
    parser.add_argument(
        "--log-optional",
        action="store_true",
        help="with --log: where a receipt cannot be recorded, answer with one that names no place in the log, instead"
        " of a 503",
    )


def key_options(parser: Parser, help_: str) -> None:
    parser.add_argument("--sign-key", metavar="FILE", help=help_)
    parser.add_argument(
        "--sign-passphrase-file",
        metavar="FILE",
        help="with --sign-key: the key's passphrase is the first line of FILE (default: typed at the terminal)",
    )


def signing_options(parser: Parser, when: str = "") -> None:
    key_options(parser, f"{when}sign receipts with this private key (see keygen)")
    parser.add_argument(
        "--sign-days",
        metavar="N",
        type=from_1_to(MAX_DAYS),
        help="with --sign-key: signatures expire after N days (default: never)",
    )
