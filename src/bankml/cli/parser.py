"""The argument parser; each command names the module that implements it."""

from bankml import __version__
from bankml.cli.arguments import POOLINGS, Command, Formatter, Parser, from_1_to, prompt_options, whole_number
from bankml.cli.batch_options import add_batch_command
from bankml.cli.proof_commands import add_proof_commands, log_options, signing_options
from bankml.model.limits import (
    DEFAULT_CONTEXT,
    DEFAULT_QUEUE,
    MAX_CONTEXT,
    MAX_MIB,
    MAX_PARALLEL,
    MAX_QUEUE,
    MAX_THREADS,
)

LISTEN = "127.0.0.1:18093"
UPSTREAM = "127.0.0.1:18092"

MAX_TOKENS = (1 << 31) - 1
MAX_PID = (1 << 31) - 1


def build_parser() -> Parser:
    parser = Parser(
        prog="bankml",
        description="A local model server that can prove its answers.",
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
    add_proof_commands(command)
    _model_commands(command)
    _generate_command(command)
    add_batch_command(command)
    _serve_commands(command)
    _demo_command(command)
    _machine_commands(command)
    return parser


def _gate_commands(command: Command) -> None:
    guard = command("guard", "gate", "validate the header of a GGUF file", "guard model.gguf --json")
    guard.add_argument("file", metavar="FILE")
    guard.add_argument(
        "--engine", choices=("mainline", "prism"), default="mainline", help="the engine to validate it for"
    )
    guard.add_argument("--json", action="store_true", help="print the verdict as one JSON object")

    sha256 = command("sha256", "gate", "print the sha256 of a file", "sha256 model.gguf")
    sha256.add_argument("file", metavar="FILE")

    pin = command(
        "pin", "gate", "compare a file with its sha256 record, or write the record", "pin model.gguf --fork FORK.json"
    )
    pin.add_argument("file", metavar="FILE")
    pin.add_argument("--fork", metavar="FORK.json", required=True, help="the record file")
    pin.add_argument("--record", action="store_true", help="write the record instead of comparing with it")
    pin.add_argument("--sha256", metavar="HEX", help="with --record: refuse unless the file has this sha256")

    verify = command("verify", "gate", "guard a model file, then check its pin", "verify model.gguf --fork FORK.json")
    verify.add_argument("file", metavar="FILE")
    verify.add_argument("--fork", metavar="FORK.json", required=True, help="the record file")
    verify.add_argument("--json", action="store_true", help="print the result as one JSON object")


def _model_commands(command: Command) -> None:
    convert = command(
        "convert",
        "models",
        "rewrite a GGUF's matrices in another weight type",
        "convert in.gguf -o out.gguf --outtype f16",
    )
    convert.add_argument(
        "file", metavar="IN.gguf", help="a model; a weight type that is not read is refused with those that are"
    )
    convert.add_argument("-o", "--output", metavar="OUT.gguf", required=True, help="the file to write")
    convert.add_argument(
        "--outtype",
        choices=("f32", "f16", "bf16", "q8_0", "q6_k", "q5_k", "q4_k", "q5_1", "q5_0", "q4_1", "q4_0", "q2_0", "q1_0"),
        required=True,
        help="weight type of the matrices",
    )
    convert.add_argument("--imatrix", metavar="FILE", help="refused: no type is written with an importance matrix")
    convert.add_argument("--force", action="store_true", help="replace an existing OUT.gguf")

    tokenize = command("tokenize", "models", "print the tokens of the text on stdin", "tokenize model.gguf < text")
    tokenize.add_argument("file", metavar="MODEL")
    tokenize.add_argument("--no-special", action="store_true", help="read special tokens as plain text")

    create = command("create", "create", "make a derived model from a Modelfile", "create mario -f Modelfile")
    create.add_argument("name", metavar="NAME", help="its name: MODEL or MODEL:TAG")
    create.add_argument("-f", "--file", metavar="MODELFILE", required=True, help="the Modelfile (-: stdin)")
    create.add_argument(
        "--registry", metavar="DIR", help="the folder of records ($BANKML_FORKS, else ~/.local/share/bankml/forks)"
    )
    create.add_argument(
        "--models", metavar="DIR", help="the folder of model files and converted ones (default: the registry)"
    )

    template = command(
        "chat-template",
        "models",
        "print the prompt of the messages on stdin",
        "chat-template model.gguf < messages.json",
    )
    template.add_argument("file", metavar="MODEL")


def _generate_command(command: Command) -> None:
    generate = command(
        "generate",
        "generate",
        "verify a model and print its answer to stdin: a text, messages, or a chat request",
        "generate model.gguf --max 64 <<< 'Say hello.'",
    )
    generate.add_argument("file", metavar="MODEL")
    generate.add_argument("--fork", metavar="FORK.json", help="the record file (default: MODEL.FORK.json)")
    generate.add_argument("--max", metavar="N", type=from_1_to(MAX_TOKENS), help="token limit of the answer")
    generate.add_argument("--json", action="store_true", help="print the complete answer as JSON, with its receipt")
    generate.add_argument(
        "--sample", action="store_true", help="sample with the model's own settings instead of greedily"
    )
    sampling = generate.add_argument_group("with --sample, overriding the model's settings")
    sampling.add_argument("--temp", metavar="T", dest="temperature", type=float)
    sampling.add_argument("--top-k", metavar="N", type=whole_number)
    sampling.add_argument("--top-p", metavar="P", type=float)
    sampling.add_argument("--min-p", metavar="P", type=float)
    sampling.add_argument("--seed", metavar="N", type=whole_number)
    generate.add_argument(
        "--ctx",
        metavar="N",
        type=from_1_to(MAX_CONTEXT),
        default=DEFAULT_CONTEXT,
        help=f"context in tokens ({DEFAULT_CONTEXT})",
    )
    generate.add_argument("--threads", metavar="N", type=from_1_to(MAX_THREADS), help="threads (one per core)")
    signing_options(generate, "with --json: ")


def _machine_commands(command: Command) -> None:
    usage = command("usage", "usage", "print resource usage of the machine and of processes, as JSON", "usage 1234")
    usage.add_argument("pids", metavar="PID", nargs="*", type=from_1_to(MAX_PID), help="a process")

    capi = command("capi", "capi", "print compiler and linker flags for libbankml", "capi --cflags --libs")
    capi.add_argument("--cflags", action="store_true", help="the include path of bankml.h")
    capi.add_argument("--libs", action="store_true", help="the flags to link libbankml")
    capi.add_argument("--static", action="store_true", help="with --libs: link libbankml.a into the program")
    capi.add_argument("--prefix", action="store_true", help="the folder of include/ and lib/")

    completion = command(
        "completion",
        "completion",
        "print a shell completion script",
        "completion bash > ~/.local/share/bash-completion/completions/bankml",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))

    doctor = command("doctor", "doctor", "print what a report of a fault needs to say of this machine", "doctor")
    doctor.add_argument("--registry", metavar="DIR", help="also what is pinned in DIR")
    doctor.add_argument("--paths", action="store_true", help="also paths, and the values of BANKML_ variables")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")

    command("version", "version", "print the version", "version")


def _serve_commands(command: Command) -> None:
    serve = command(
        "serve",
        "serve",
        "verify a model file and serve it over HTTP",
        "serve model.gguf --fork FORK.json --native",
    )
    serve.add_argument("file", metavar="FILE")
    serve.add_argument("--fork", metavar="FORK.json", help="the record file (default: FILE.FORK.json)")
    serve.add_argument("--native", action="store_true", help="answer with bankML's own forward pass")
    serve.add_argument("--spawn", metavar="LLAMA_SERVER", help="start this llama-server and answer with it")
    serve.add_argument("--spec-ngram", action="store_true", help="with --spawn: draft from the text's own n-grams")
    serve.add_argument("--slot-dir", metavar="DIR", help="the folder of slot files")
    serve.add_argument(
        "--slots-trust", action="store_true", help="with --native: restore slot files of other servers too"
    )
    _batching(serve, "with --native: ")
    _models(serve, "with --native: ")
    _embedding(serve, "with --native: ")
    serve.add_argument("--engine-log", metavar="FILE", help="with --spawn: append llama-server's output to FILE")
    serve.add_argument("--api-key", metavar="KEY", help="require this key of every request but /health (see ps)")
    serve.add_argument("--api-key-file", metavar="FILE", help="require one of the keys in FILE, one a line")
    serve.add_argument(
        "--allow-origin",
        metavar="URL",
        action="append",
        help="let pages of this origin use the server, for example http://localhost:3000 (may be repeated)",
    )
    serve.add_argument(
        "--allow-remote-origin", action="store_true", help="with --allow-origin: allow origins of other machines too"
    )
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
    signing_options(serve)
    log_options(serve)
    _addresses(serve)
    serve.add_argument(
        "--upstream",
        metavar="HOST:PORT",
        help=f"the address of llama-server's endpoints ({UPSTREAM}); without --native and --spawn: of the running"
        " llama-server",
    )


def _demo_command(command: Command) -> None:
    demo = command("demo", "serve", "download a small model, verify it and serve it", "demo")
    demo.add_argument("--dir", metavar="DIR", help="the model's folder (default: $XDG_DATA_HOME/bankml/demo)")
    demo.set_defaults(slot_dir=None, slots_trust=False)
    demo.add_argument("--no-serve", action="store_true", help="only prepare the model file")
    demo.set_defaults(embeddings=False, pooling=None, rerank=False, ubatch_size=None, kv_limit=None)
    _batching(demo)
    _models(demo)
    _addresses(demo)
    demo.add_argument("--upstream", metavar="HOST:PORT", help=f"the address of llama-server's endpoints ({UPSTREAM})")


def _models(parser: Parser, when: str = "") -> None:
    parser.add_argument(
        "--registry",
        metavar="DIR",
        nargs="?",
        const="",
        help=f"{when}serve every model pinned in DIR by name (default DIR: $BANKML_FORKS, else"
        " ~/.local/share/bankml/forks)",
    )
    parser.add_argument(
        "--keep-alive",
        metavar="TIME",
        help=f"{when}how long a model stays loaded after a request of Ollama's API: 90s, 1h, -1 for no limit (5m)",
    )
    parser.add_argument("--any-model", action="store_true", help=f"{when}an unknown model name means FILE's model")
    prompt_options(parser, when)


def _embedding(parser: Parser, when: str = "") -> None:
    parser.add_argument(
        "--embeddings",
        "--embedding",
        action="store_true",
        help=f"{when}every model serves embeddings, of inputs as long as the context; without it those do whose file"
        " names a pooling",
    )
    parser.add_argument(
        "--pooling",
        choices=POOLINGS,
        help=f"{when}how an input's tokens become one vector (what the model's file names, else none)",
    )
    parser.add_argument(
        "--rerank",
        "--reranking",
        action="store_true",
        help=f"{when}serve /v1/rerank with the model's classifier: --embeddings --pooling rank",
    )
    parser.add_argument(
        "--ubatch-size",
        "-ub",
        metavar="N",
        type=from_1_to(MAX_CONTEXT),
        help=f"{when}the most tokens of an input that is embedded whole (with --embeddings the context, else 512)",
    )


def _batching(parser: Parser, when: str = "") -> None:
    parser.add_argument(
        "--parallel",
        metavar="N",
        type=from_1_to(MAX_PARALLEL),
        help=f"{when}answer up to N requests at once, each with a context of its own (as many as the machine suits)",
    )
    parser.add_argument(
        "--kv-limit",
        metavar="MIB",
        type=from_1_to(MAX_MIB),
        help=f"{when}the most memory for the keys and values of all requests; who needs more waits (no limit)",
    )
    parser.add_argument(
        "--queue",
        metavar="N",
        type=from_1_to(MAX_QUEUE),
        help=f"{when}the most requests that wait; the next gets a 503 ({DEFAULT_QUEUE})",
    )


def _addresses(parser: Parser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", default=LISTEN, help=f"the address to listen at ({LISTEN})")
    parser.add_argument("--ctx", metavar="N", type=whole_number, help=f"context in tokens ({DEFAULT_CONTEXT})")
    parser.add_argument(
        "--threads", metavar="N", type=whole_number, help="threads of the forward pass (one per core; --spawn: 3)"
    )
