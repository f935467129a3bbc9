"""The options of `bankml batch`."""

from bankml.cli.arguments import POOLINGS, Command, Parser, from_1_to, prompt_options
from bankml.cli.proof_commands import key_options
from bankml.model.limits import DEFAULT_CONTEXT, MAX_CONTEXT, MAX_PARALLEL, MAX_THREADS

SAMPLE = "1%"
MAX_WORKERS = 10_000


def add_batch_command(command: Command) -> None:
    batch = command(
        "batch",
        "batch",
        "answer the requests of a file, and continue where an earlier run stopped",
        "batch requests.jsonl -o answers.jsonl --model model.gguf --parallel 8",
    )
    batch.add_argument("input", metavar="INPUT.jsonl", help="requests, one a line, as for OpenAI's batch API")
    batch.add_argument("-o", "--output", metavar="OUTPUT.jsonl", help="the answers, in the order of the requests")
    batch.add_argument("--quiet", action="store_true", help="print no progress")
    _in_this_process(batch)
    _with_servers(batch)
    _on_a_cluster(batch)
    _verifying(batch)
    key_options(batch, "sign the batch's digest with this private key (see keygen)")


def _in_this_process(batch: Parser) -> None:
    computing = batch.add_argument_group("in this process")
    computing.add_argument("--model", metavar="FILE", help="the model's file")
    computing.add_argument("--fork", metavar="FORK.json", help="its file of records (default: FILE.FORK.json)")
    computing.add_argument("--registry", metavar="DIR", help="a folder of records: lines name their models")
    computing.add_argument("--any-model", action="store_true", help="an unknown model name means FILE's model")
    computing.add_argument(
        "--parallel", metavar="N", type=from_1_to(MAX_PARALLEL), help="answers at once (as many as the machine suits)"
    )
    computing.add_argument(
        "--ctx",
        metavar="N",
        type=from_1_to(MAX_CONTEXT),
        default=DEFAULT_CONTEXT,
        help=f"context in tokens ({DEFAULT_CONTEXT})",
    )
    computing.add_argument("--threads", metavar="N", type=from_1_to(MAX_THREADS), help="threads (one per core)")
    computing.add_argument("--embeddings", action="store_true", help="embed inputs as long as the context")
    computing.add_argument("--pooling", choices=POOLINGS[:-1], help="how an input's tokens become one vector")
    prompt_options(computing)


def _with_servers(batch: Parser) -> None:
    servers = batch.add_argument_group("with running servers")
    servers.add_argument(
        "--server",
        metavar="URL",
        nargs="+",
        default=[],
        help="answer with these servers, up to --parallel requests at once each (8); --model names the pin of their"
        " model, and $BANKML_API_KEY is their key",
    )
    servers.add_argument(
        "--key", metavar="PUB.pem", help="require receipts, with --verify a digest, that this key signed"
    )


def _on_a_cluster(batch: Parser) -> None:
    cluster = batch.add_argument_group("on a Ray cluster")
    cluster.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help="answer with the workers of this cluster (default: $RAY_ADDRESS, else a cluster of this machine)",
    )
    cluster.add_argument(
        "--ray-workers", metavar="N", type=from_1_to(MAX_WORKERS), help="how many workers (default: one a node)"
    )
    cluster.add_argument(
        "--ray-cpus", metavar="N", type=from_1_to(MAX_THREADS), help="CPUs and threads of a worker (all of a node)"
    )
    cluster.add_argument(
        "--ray-ship",
        action="store_true",
        help="send the file to each node once, instead of reading --model's path there; either is verified there",
    )


def _verifying(batch: Parser) -> None:
    verifying = batch.add_argument_group("to verify an output")
    verifying.add_argument(
        "--verify",
        metavar="OUTPUT.jsonl",
        help="check every line, every receipt and the digest of this output of INPUT, and compute a sample again",
    )
    verifying.add_argument(
        "--sample", metavar="N", default=SAMPLE, help=f"with --verify: how many, a number or a share ({SAMPLE}%)"
    )
