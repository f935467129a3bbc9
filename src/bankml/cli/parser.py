"""The grammar of the command line; what a command does is in the module its parser names."""

import argparse
import os
import re
import sys
from collections.abc import Callable

from bankml import __version__
from bankml.cli.output import write
from bankml.errors import UsageError
from bankml.model.limits import DEFAULT_CONTEXT, MAX_CONTEXT, MAX_THREADS

TYPE_CHECKING = False
"""What type checkers take for True; the module that has it takes longer to load than this one."""

if TYPE_CHECKING:
    from typing import NoReturn

LISTEN = "127.0.0.1:18093"
UPSTREAM = "127.0.0.1:18092"

*READ, LAST_READ = "F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q1_0", "Q2_0"
"""The types of matrices that `convert` reads, as `gguf.dequantize` has them; it would have to be loaded to be asked."""

WHOLE = re.compile("[-+]?[0-9]+", re.ASCII)
"""int() would take 1_000 and the digits of every script."""

MAX_TOKENS = (1 << 31) - 1
MAX_PID = (1 << 31) - 1


class Parser(argparse.ArgumentParser):
    """argparse, whose complaint becomes the one line that every error is."""

    def error(self, message: str) -> "NoReturn":
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """What a command does not know is that command's to tell: argparse leaves it to the parser of them all."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _print_message(self, message: str, file: object = None) -> None:
        """argparse's passes over a stdout that cannot be written."""
        write(message.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


class Formatter(argparse.HelpFormatter):
    """argparse's, which asks a module for the terminal's width that takes as long to load as all of this."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=max(_columns(), 40) - 2)


def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


Command = Callable[[str, str, str, str], Parser]  # name, module, help, example


def build_parser() -> Parser:
    parser = Parser(
        prog="bankml",
        description="A local model server that can prove what it says.",
        allow_abbrev=False,
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action="version", version=f"bankml {__version__}", help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)

    def command(name: str, module: str, help_: str, example: str) -> Parser:
        added: Parser = commands.add_parser(
            name,
            help=help_,
            description=help_,
            epilog=f"example: bankml {example}",
            allow_abbrev=False,
            formatter_class=Formatter,
        )
        added.set_defaults(module=module, function=name.replace("-", "_"))
        return added

    _gate_commands(command)
    _model_commands(command)
    _generate_command(command)
    _serve_commands(command)
    _machine_commands(command)
    return parser


def _gate_commands(command: Command) -> None:
    guard = command("guard", "gate", "judge a GGUF file by its header alone", "guard model.gguf --json")
    guard.add_argument("file", metavar="FILE")
    guard.add_argument("--engine", choices=("mainline", "prism"), default="mainline", help="who is to play it")
    guard.add_argument("--json", action="store_true", help="print the verdict as one JSON object")

    sha256 = command("sha256", "gate", "print the sha256 of a file", "sha256 model.gguf")
    sha256.add_argument("file", metavar="FILE")

    pin = command(
        "pin", "gate", "compare a file with its sha256 record, or record it", "pin model.gguf --fork FORK.json"
    )
    pin.add_argument("file", metavar="FILE")
    pin.add_argument("--fork", metavar="FORK.json", required=True, help="the file of records")
    pin.add_argument("--record", action="store_true", help="write the record instead of comparing with it")
    pin.add_argument("--sha256", metavar="HEX", help="with --record: refuse unless the file has this sha256")

    verify = command("verify", "gate", "guard a model file, then check its pin", "verify model.gguf --fork FORK.json")
    verify.add_argument("file", metavar="FILE")
    verify.add_argument("--fork", metavar="FORK.json", required=True, help="the file of records")
    verify.add_argument("--json", action="store_true", help="print the result as one JSON object")

    check = command(
        "check",
        "check",
        "check an answer's receipt against its request",
        "check request.json answer.json --model m.gguf",
    )
    check.add_argument("request", metavar="REQUEST.json", help="the request's body as it was sent (- is stdin)")
    check.add_argument("answer", metavar="ANSWER.json", help="the answer's body, streamed or not (- is stdin)")
    check.add_argument("--model", metavar="FILE", help="compare the receipt's model_sha256 with this file")


def _model_commands(command: Command) -> None:
    convert = command(
        "convert",
        "models",
        "rewrite a GGUF's matrices in another type",
        "convert in.gguf -o out.gguf --outtype f16",
    )
    convert.add_argument("file", metavar="IN.gguf", help=f"its matrices may be {', '.join(READ)} or {LAST_READ}")
    convert.add_argument("-o", "--output", metavar="OUT.gguf", required=True, help="the file that is written")
    convert.add_argument("--outtype", choices=("f16", "q1_0", "q2_0"), required=True, help="the type of the matrices")
    convert.add_argument("--force", action="store_true", help="replace OUT.gguf if it is there")

    tokenize = command("tokenize", "models", "print the tokens of the text on stdin", "tokenize model.gguf < text")
    tokenize.add_argument("file", metavar="MODEL")
    tokenize.add_argument("--no-special", action="store_true", help="read special tokens as plain text")

    create = command("create", "create", "make a model of another by a Modelfile", "create mario -f Modelfile")
    create.add_argument("name", metavar="NAME", help="its name: MODEL or MODEL:TAG")
    create.add_argument(
        "-f", "--file", metavar="MODELFILE", required=True, help="what it is made of, and how (- is stdin)"
    )
    create.add_argument(
        "--registry", metavar="DIR", help="the folder of records ($BANKML_FORKS, else ~/.local/share/bankml/forks)"
    )
    create.add_argument(
        "--models", metavar="DIR", help="where model files are and a converted one goes (default: the registry)"
    )

    template = command(
        "chat-template",
        "models",
        "print the prompt that the messages on stdin make",
        "chat-template model.gguf < messages.json",
    )
    template.add_argument("file", metavar="MODEL")


def _generate_command(command: Command) -> None:
    generate = command(
        "generate",
        "generate",
        "verify a model and print its answer to what is on stdin: a text, messages, or a chat request",
        "generate model.gguf --max 64 <<< 'Say hello.'",
    )
    generate.add_argument("file", metavar="MODEL")
    generate.add_argument("--fork", metavar="FORK.json", help="the file of records (default: MODEL.FORK.json)")
    generate.add_argument("--max", metavar="N", type=_from_1_to(MAX_TOKENS), help="tokens of the answer at most")
    generate.add_argument("--json", action="store_true", help="print the whole answer as JSON, with its receipt")
    generate.add_argument(
        "--sample", action="store_true", help="draw tokens by the model's own settings, not always the likeliest"
    )
    sampling = generate.add_argument_group("with --sample, in place of the model's own")
    sampling.add_argument("--temp", metavar="T", dest="temperature", type=float)
    sampling.add_argument("--top-k", metavar="N", type=_whole_number)
    sampling.add_argument("--top-p", metavar="P", type=float)
    sampling.add_argument("--min-p", metavar="P", type=float)
    sampling.add_argument("--seed", metavar="N", type=_whole_number)
    generate.add_argument(
        "--ctx",
        metavar="N",
        type=_from_1_to(MAX_CONTEXT),
        default=DEFAULT_CONTEXT,
        help=f"context in tokens ({DEFAULT_CONTEXT})",
    )
    generate.add_argument("--threads", metavar="N", type=_from_1_to(MAX_THREADS), help="threads (every core)")


def _whole_number(text: str) -> int:
    if not WHOLE.fullmatch(text):
        raise ValueError(text)
    return int(text)


_whole_number.__name__ = "whole number"  # argparse's word for it: invalid whole number value: 'x'


def _from_1_to(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = _whole_number(text)
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is out of range: 1 to {most}")
        return value

    number.__name__ = _whole_number.__name__
    return number


def _machine_commands(command: Command) -> None:
    usage = command(
        "usage", "usage", "print what the machine uses, and the processes that are named, as JSON", "usage 1234"
    )
    usage.add_argument("pids", metavar="PID", nargs="*", type=_from_1_to(MAX_PID), help="a process to look at")

    capi = command("capi", "capi", "print what a C compiler needs for libbankml", "capi --cflags --libs")
    capi.add_argument("--cflags", action="store_true", help="where bankml.h is")
    capi.add_argument("--libs", action="store_true", help="where libbankml is, and how it is linked")
    capi.add_argument("--static", action="store_true", help="with --libs: libbankml.a, as a part of the program")
    capi.add_argument("--prefix", action="store_true", help="the folder that holds include/ and lib/")

    completion = command(
        "completion",
        "completion",
        "print what makes a shell complete bankml's commands",
        "completion bash > ~/.local/share/bash-completion/completions/bankml",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))

    command("version", "version", "print the version", "version")


def _serve_commands(command: Command) -> None:
    serve = command(
        "serve",
        "serve",
        "verify a model file and answer for it over HTTP",
        "serve model.gguf --fork FORK.json --native",
    )
    serve.add_argument("file", metavar="FILE")
    serve.add_argument("--fork", metavar="FORK.json", help="the file of records (default: FILE.FORK.json)")
    serve.add_argument("--native", action="store_true", help="answer from bankML's own forward pass")
    serve.add_argument("--spawn", metavar="LLAMA_SERVER", help="start this llama-server and answer from it")
    serve.add_argument("--spec-ngram", action="store_true", help="with --spawn: draft from the text's own n-grams")
    serve.add_argument("--slot-dir", metavar="DIR", help="the folder of saved slots")
    serve.add_argument(
        "--slots-trust",
        action="store_true",
        help="with --native: restore slot files of other servers too",
    )
    _models(serve, "with --native: ")
    serve.add_argument("--engine-log", metavar="FILE", help="with --spawn: append llama-server's output to FILE")
    serve.add_argument("--api-key", metavar="KEY", help="require this key of every request but /health (see ps)")
    serve.add_argument("--api-key-file", metavar="FILE", help="require one of the keys in FILE, one a line")
    serve.add_argument(
        "--upstream-timeout",
        type=int,
        metavar="SECONDS",
        help="in front of llama-server: give up on a generation after this time without a byte of it (3600)",
    )
    serve.add_argument(
        "--engine-mmap",
        action="store_true",
        help="with --spawn: llama-server maps the model's file instead of reading it into memory; a later store to the"
        " file then changes its weights, and receipts say so",
    )
    _addresses(serve)
    serve.add_argument(
        "--upstream",
        metavar="HOST:PORT",
        help=f"where llama-server's endpoints answer ({UPSTREAM}); without --native and --spawn: of the"
        " llama-server that runs there",
    )

    demo = command("demo", "serve", "fetch a small model, verify it and serve it", "demo")
    demo.add_argument("--dir", metavar="DIR", help="where the model is kept (default: $XDG_DATA_HOME/bankml/demo)")
    demo.set_defaults(slot_dir=None)
    demo.add_argument("--no-serve", action="store_true", help="only make the model file ready")
    _models(demo)
    _addresses(demo)
    demo.add_argument("--upstream", metavar="HOST:PORT", help=f"where llama-server's endpoints answer ({UPSTREAM})")


def _models(parser: Parser, when: str = "") -> None:
    parser.add_argument(
        "--registry",
        metavar="DIR",
        nargs="?",
        const="",
        help=f"{when}every model pinned in DIR may be asked for by name (default DIR: $BANKML_FORKS, else"
        " ~/.local/share/bankml/forks)",
    )
    parser.add_argument(
        "--keep-alive",
        metavar="TIME",
        help=f"{when}how long a model stays after an answer of Ollama's API: 90s, 1h, -1 for good (5m)",
    )


def _addresses(parser: Parser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", default=LISTEN, help=f"where to listen ({LISTEN})")
    parser.add_argument("--ctx", metavar="N", type=_whole_number, help=f"context in tokens ({DEFAULT_CONTEXT})")
    parser.add_argument(
        "--threads", metavar="N", type=_whole_number, help="threads of the forward pass (every core; --spawn: 3)"
    )
