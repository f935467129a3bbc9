"""The commands and options about what a third party can check: receipts, answers, keys and signatures."""

from bankml.cli.arguments import Command, Parser, from_1_to
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


def signing_options(parser: Parser, when: str = "") -> None:
    parser.add_argument("--sign-key", metavar="FILE", help=f"{when}sign receipts with this private key (see keygen)")
    parser.add_argument(
        "--sign-passphrase-file",
        metavar="FILE",
        help="with --sign-key: the key's passphrase is the first line of FILE (default: typed at the terminal)",
    )
    parser.add_argument(
        "--sign-days",
        metavar="N",
        type=from_1_to(MAX_DAYS),
        help="with --sign-key: signatures expire after N days (default: never)",
    )
