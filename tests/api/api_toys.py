"""An application over the toy model, and a reply that keeps in memory what a gateway would send."""

import json
import time
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

from bankml.answers.describe import describe
from bankml.answers.format import AnswerFormat
from bankml.answers.request import FormatRequest
from bankml.answers.tags import AnswerBuilder
from bankml.api.ollama.routes import Ollama
from bankml.api.routes import NativeApplication
from bankml.engine.engine import Engine
from bankml.errors import ModelChanged, RequestError
from bankml.grammar.constraint import NO_CONSTRAINT
from bankml.http.exchange import Request
from bankml.library.facts import FileFacts
from bankml.library.reference import PinnedFile
from bankml.library.registry import Registry
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.receipt import Provenance, sha256_hex
from bankml.sampling.parameters import SamplingParams
from bankml.text.template import ChatTemplate
from tests.engine.engine_toys import ByteVocabulary, GreedySampler, ToyModel, ToyPieces, saying

PROVENANCE = Provenance("bankml-native test", sha256_hex(b"weights"), "play")
SOURCE = PinnedFile(
    "toy-1m-f16", "Toy-1M-F16.gguf", PROVENANCE.model_sha256, "/models/FORK.json", "/models/Toy-1M-F16.gguf"
)
CHAT = "/v1/chat/completions"
STREAMS = ("text/event-stream", "application/x-ndjson")


class ToyFile:
    """A verified file that may be told to have changed."""

    path = "/models/Toy-1M-F16.gguf"
    fork_path = "/models/FORK.json"
    verified_at = 1767225600.5
    identity = SimpleNamespace(size=7, mtime_ns=1767225000_500000000)
    header = SimpleNamespace(
        metadata={
            "general.architecture": "toy",
            "toy.context_length": 4096,
            "tokenizer.ggml.tokens": [chr(0x100 + byte) for byte in range(257)],
        },
        tensors=(),
    )
    changed = False

    @property
    def unchanged(self):
        return not self.changed

    def rehash(self):
        self.check_unchanged()

    def check_unchanged(self):
        if self.changed:
            raise ModelChanged("Toy-1M-F16.gguf is not the file that was verified")


class ToyResident(Resident):
    """A model whose prompt is its messages' text, and whose sampler a test chooses."""

    toy_sampler = staticmethod(lambda overrides: GreedySampler())
    toy_template = None

    def answer_format(self, conversation, spec=NO_CONSTRAINT):
        if self.content_special != "parse":
            return super().answer_format(conversation, spec)
        if self.toy_template is not None and (spec.schema is not None or conversation.tools):  # the toy's own prompt
            form = describe(FormatRequest(self.toy_template, conversation, spec.schema, spec.strict))
            return replace(form, prompt=self.answer_format(replace(conversation, tools=())).prompt)
        messages = conversation.messages
        if not all(isinstance(m["content"], str) for m in messages):
            raise RequestError("All messages must contain 'content'")
        prefill = messages[-1]["content"] if conversation.continues else ""
        shown = messages[:-1] if conversation.continues else messages
        p = AnswerBuilder()
        prompt = "".join(f"Q:{m['content']}\n" for m in shown) + "A:" + prefill
        return AnswerFormat(prompt, prefill, p.build(p.content(p.rest()) + p.end()), continues=bool(prefill))

    def sampler(self, overrides):
        overrides.over(self.defaults, self._vocabulary)
        return self.toy_sampler(overrides)

    def text_stream(self, stop, *, chat=False, begun=False):
        return ToyPieces(stop, chat, begun)


def toy_resident(answer="Oslo.", model=None, sampler=None, template="{{ messages }}"):
    """`answer`: a text to say, or a function from the context's tokens to the next."""
    model = model or ToyModel(saying(answer) if isinstance(answer, str) else answer)
    resident = ToyResident(
        source=SOURCE, verified=ToyFile(), provenance=PROVENANCE, engine=Engine(model, ByteVocabulary()),
        tokens=ByteVocabulary(), template=ChatTemplate(template), defaults=SamplingParams(),
    )  # fmt: skip
    if sampler is not None:
        resident.toy_sampler = sampler
    return resident


class ToyOpener:
    """Opens the one model again, as it was."""

    n_ctx = 4096

    def __init__(self, resident):
        self._resident = resident

    def facts(self, source):
        return FileFacts()

    def check(self, source):
        pass

    def open(self, source):
        return self._resident


def toy_library(resident):
    """The library of one model that is resident."""
    return Library(Registry(None, resident.source), ToyOpener(resident), resident)


def toy_application(answer="Oslo.", **parts):
    return NativeApplication(toy_library(toy_resident(answer, **parts)))


def toy_ollama(answer="Oslo.", keep_alive=300.0, **parts):
    """The same with Ollama's API, and its library."""
    library = toy_library(toy_resident(answer, **parts))
    return NativeApplication(library, ollama=Ollama(Registry(None, SOURCE), keep_alive)), library


@dataclass
class MemoryReply:
    status: int | None = None
    body: bytes = b""
    content_type: str = ""
    headers: dict = field(default_factory=dict)
    writes: list = field(default_factory=list)
    finished: bool = False
    room: int = 10**9
    is_cancelled: bool = False

    def whole(self, status, body, content_type="application/json; charset=utf-8", headers=()):
        assert self.status is None, "answered twice"
        self.status, self.body, self.content_type, self.headers = status, body, content_type, dict(headers)
        self.finished = True

    def start(self, status, content_type, ping_interval=None, headers=()):
        self.ping_interval, self.headers = ping_interval, dict(headers)
        assert self.status is None, "answered twice"
        self.status, self.content_type = status, content_type

    def write(self, data):
        assert self.content_type in STREAMS and not self.finished
        if len(self.writes) >= self.room:
            self.is_cancelled = True
            return False
        self.writes.append(data)
        self.body += data
        return True

    def finish(self):
        assert not self.finished
        self.finished = True

    def cancelled(self):
        return self.is_cancelled

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.decode().splitlines()]

    @property
    def events(self):
        return [json.loads(e[6:]) for e in self.body.decode().split("\n\n") if e.startswith("data: {")]


def ask(application, path=CHAT, body=None, *, method=None, address="gateway", reply=None, arrived=None):
    """The reply to one request; `body` is JSON to be written, or bytes as they are."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    method = method or ("GET" if body is None else "POST")
    reply = reply or MemoryReply()
    arrived = time.monotonic() if arrived is None else arrived
    reply.log = application.answer(Request(method, path, "", {}, data, address, arrived), reply)
    return reply


def user(text, **more):
    return {"messages": [{"role": "user", "content": text}], **more}
