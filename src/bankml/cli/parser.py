"""The grammar of the command line; what a command does is in the module its parser names."""

import argparse
from collections.abc import Callable
from typing import NoReturn

from bankml.errors import UsageError

LISTEN = "127.0.0.1:18093"
UPSTREAM = "127.0.0.1:18092"
CONTEXT = 4096


class Parser(argparse.ArgumentParser):
    """argparse, whose complaint becomes the one line that every error is."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


Command = Callable[[str, str, str, str], Parser]  # name, module, help, example


def build_parser() -> Parser:
    parser = Parser(prog="bankml", description="A local model server that can prove what it says.", allow_abbrev=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)

    def command(name: str, module: str, help_: str, example: str) -> Parser:
        added: Parser = commands.add_parser(
            name, help=help_, description=help_, epilog=f"example: bankml {example}", allow_abbrev=False
        )
        added.set_defaults(module=module, function=name.replace("-", "_"))
        return added

    _gate_commands(command)
    _model_commands(command)
    _serve_commands(command)
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

    command("version", "gate", "print the version", "version")


def _model_commands(command: Command) -> None:
    convert = command(
        "convert", "models", "rewrite a GGUF's matrices in another type", "convert in.gguf -o out.gguf --outtype f16"
    )
    convert.add_argument("file", metavar="IN.gguf")
    convert.add_argument("-o", "--output", metavar="OUT.gguf", required=True)
    convert.add_argument("--outtype", choices=("f16", "q1_0", "q2_0"), required=True, help="the type of the matrices")
    convert.add_argument("--force", action="store_true", help="replace OUT.gguf if it is there")

    tokenize = command("tokenize", "models", "print the tokens of the text on stdin", "tokenize model.gguf < text")
    tokenize.add_argument("file", metavar="MODEL")
    tokenize.add_argument("--no-special", action="store_true", help="read special tokens as plain text")

    create = command("create", "create", "make a model of another by a Modelfile", "create mario -f Modelfile")
    create.add_argument("name", metavar="NAME", help="its name: MODEL or MODEL:TAG")
    create.add_argument("-f", "--file", metavar="MODELFILE", required=True, help="what it is made of, and how")
    create.add_argument(
        "--registry", metavar="DIR", help="the folder of records ($BANKML_FORKS, else ~/.local/share/bankml/forks)"
    )
    create.add_argument("--models", metavar="DIR", help="where a converted model file goes (default: the registry)")

    template = command(
        "chat-template",
        "models",
        "print the prompt that the messages on stdin make",
        "chat-template model.gguf < messages.json",
    )
    template.add_argument("file", metavar="MODEL")


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
        "--registry",
        metavar="DIR",
        nargs="?",
        const="",
        help="with --native: every model pinned in DIR may be asked for by name (default DIR: $BANKML_FORKS, else"
        " ~/.local/share/bankml/forks)",
    )
    serve.add_argument(
        "--keep-alive",
        metavar="TIME",
        help="with --native: how long a model stays after an answer of Ollama's API: 90s, 1h, -1 for good (5m)",
    )
    serve.add_argument("--engine-log", metavar="FILE", help="with --spawn: add what llama-server prints to FILE")
    _addresses(serve)
    serve.add_argument(
        "--upstream",
        metavar="HOST:PORT",
        help=f"where llama-server's endpoints answer ({UPSTREAM}); without --native and --spawn: of the"
        " llama-server that runs there",
    )

    demo = command("demo", "serve", "fetch a small model, verify it and serve it", "demo")
    demo.add_argument("--dir", metavar="DIR", help="where the model is kept (default: $XDG_DATA_HOME/bankml/demo)")
    demo.set_defaults(slot_dir=None, registry=None, keep_alive=None)
    demo.add_argument("--no-serve", action="store_true", help="only make the model file ready")
    _addresses(demo)
    demo.add_argument("--upstream", metavar="HOST:PORT", help=f"where llama-server's endpoints answer ({UPSTREAM})")


def _addresses(parser: Parser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", default=LISTEN, help=f"where to listen ({LISTEN})")
    parser.add_argument("--ctx", metavar="N", type=int, help=f"context in tokens ({CONTEXT})")
    parser.add_argument("--threads", metavar="N", type=int, help="threads of the forward pass (every core; --spawn: 3)")
