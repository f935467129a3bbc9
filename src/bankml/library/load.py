"""From a verified file to a loaded model: the one place where the rooms of a model are put together."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from bankml.engine.engine import ENGINE, Engine
from bankml.engine.memory import available_memory, configured_cache_limit, give_back_memory
from bankml.engine.prompt_cache import prompt_cache
from bankml.errors import FileMissing, FileProblem, PinMismatch, Refused, named
from bankml.gate.contents import memory_for
from bankml.gate.guard import guard, require_model
from bankml.gate.identity import FileIdentity
from bankml.gate.verify import Verified, verify
from bankml.gguf.header import Header
from bankml.library.facts import FactsCache, FileFacts
from bankml.library.reference import PinnedFile
from bankml.library.registry import Registry
from bankml.library.residency import FOR_GOOD, Library, Names
from bankml.library.resident import Resident
from bankml.library.supported import names_pooling, require_supported, template_source
from bankml.model.config import read_config
from bankml.model.kv_cache import cache_bytes, cache_type_from
from bankml.model.limits import MICRO_BATCH, context_cells
from bankml.model.model import EmbeddingOptions, Model
from bankml.model.shape import Pooling
from bankml.receipt.receipt import Provenance
from bankml.sampling.parameters import model_defaults
from bankml.text.special_content import ContentSpecial
from bankml.text.template import ChatTemplate
from bankml.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class LoadOptions:
    """How models are loaded: `parallel` sequences (None: as many as suit) with a context of `n_ctx` tokens each.

    `threads` None means the model's own choice. `environment` has the BANKML_ variables. `reasoning`: a model reasons
    where it can, unless a request says otherwise. `embeddings`: every model serves them, not only those whose header
    names a pooling; `pooling` is the one of all models, `longest` the most tokens of a micro-batch of an input (None:
    as `embedding_options` says). `kv_limit` bytes are the most that keys and values in slots take.
    """

    n_ctx: int
    threads: int | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    reasoning: bool = False
    content_special: ContentSpecial = "parse"
    parallel: int | None = 1
    embeddings: bool = False
    pooling: Pooling | None = None
    longest: int | None = None
    kv_limit: int | None = None

    @property
    def embedding_options(self) -> EmbeddingOptions:
        """A micro-batch of an input is as long as the context where embeddings were asked for: llama-server's
        `--batch-size` and `--ubatch-size` have to be raised for that; else its default."""
        whole = context_cells(self.n_ctx) if self.embeddings else MICRO_BATCH
        return EmbeddingOptions(self.pooling, self.longest or whole)


MOST_BY_DEFAULT = 4
"""Sequences at once that a server has without more said, as llama-server."""


def parallel_of(header: Header, options: LoadOptions) -> int:
    """The number of sequences, where `options` leave it open: MOST_BY_DEFAULT, but no more than have room for full
    contexts in half of the memory that is available. Raises Refused for an unsupported model."""
    if options.parallel is not None:
        return options.parallel
    full = cache_bytes(read_config(header), context_cells(options.n_ctx), cache_type_from(options.environment))
    return max(1, min(MOST_BY_DEFAULT, available_memory() // 2 // max(1, full)))


def load(
    verified: Verified, options: LoadOptions, source: PinnedFile | None = None, tokenizer: Tokenizer | None = None
) -> Resident:
    """Loads a model; the weights are opened last, when nothing else can be refused any more.

    `source` is what was verified, if it was requested by name; `tokenizer` is that of the file's header, if it exists
    already. Raises Refused, naming the file and the key or tensor, for an unsupported model.
    """
    with named(verified.name):
        return _load(verified, options, source or PinnedFile.of(verified), tokenizer)


def _load(verified: Verified, options: LoadOptions, source: PinnedFile, made: Tokenizer | None) -> Resident:
    tokenizer = made or Tokenizer.from_header(verified.header)
    template = ChatTemplate(template_source(verified.header), tokenizer.template_tokens)
    defaults = model_defaults(verified.header.metadata)
    limit = configured_cache_limit(options.environment)
    parallel = parallel_of(verified.header, options)
    model = Model.open(
        verified, options.n_ctx, options.threads, options.environment, parallel, options.embedding_options
    )
    give_back_memory()
    return Resident(
        source=source,
        verified=verified,
        provenance=Provenance(ENGINE, verified.sha256, verified.verdict.kind),
        engine=Engine(model, tokenizer, parallel, prompt_cache(limit, model.n_ctx), options.kv_limit),
        tokens=tokenizer,
        template=template,
        defaults=defaults,
        reasoning=options.reasoning,
        content_special=options.content_special,
        arithmetic=model.arithmetic,
        embeds=options.embeddings or names_pooling(verified.header),
        pooling=model.pooling,
        generates=model.generates,
    )


def open_library(
    verified: Verified,
    options: LoadOptions,
    known: Names | None = None,
    default_keep: float | None = FOR_GOOD,
    queue_limit: int | None = None,
    tokenizer: Tokenizer | None = None,
) -> Library:
    """The library whose startup model is the verified file, loaded now.

    `known` resolves all other names; None: there are none. `default_keep` is Library's, `tokenizer` is `load`'s, and at
    most `queue_limit` requests wait for a model. Raises what `load` raises.
    """
    options = replace(options, parallel=parallel_of(verified.header, options))
    resident = load(verified, options, tokenizer=tokenizer)
    names = known or Registry(None, resident.source)
    return Library(names, VerifyingOpener(options), resident, default_keep, len(resident.engine.slots), queue_limit)


@dataclass(frozen=True)
class VerifyingOpener:
    """Verifies and loads models."""

    options: LoadOptions
    known: FactsCache = field(default_factory=FactsCache)

    @property
    def n_ctx(self) -> int:
        """The configured context in tokens."""
        return self.options.n_ctx

    def facts(self, source: PinnedFile) -> FileFacts:
        """What is known of `source`, cached until its file changes."""
        return self.known.facts(source)

    def check(self, source: PinnedFile) -> None:
        """Raises Refused or Truncated if the header is unsupported, the file is missing, or it is known not to match
        its pin."""
        with _located_file(source) as path, named(source.file):
            require_supported(require_model(guard(path)))
            if mismatch := self.known.mismatch(source):
                raise PinMismatch(mismatch)

    def open(self, source: PinnedFile) -> Resident:
        """Verifies and loads `source`. Raises Refused, Truncated."""
        with _located_file(source) as path:
            identity = FileIdentity.of(path)
            try:
                verified = verify(path, source.fork, name=source.file, require=require_supported, into=memory_for)
            except PinMismatch as error:
                self.known.mismatched(source, identity, error.public_message)
                raise
            if verified.sha256 != source.sha256:
                raise Refused(f"{source.file} is pinned to {verified.sha256} now, not to {source.sha256}: refused")
            return load(verified, self.options, source)


@contextmanager
def _located_file(source: PinnedFile) -> Iterator[str]:
    """The path of `source`'s file; a problem with the file or its record becomes a refusal that contains no path."""
    if source.path is None:
        raise FileMissing(f"{source.file} is pinned, but the file is missing: refused")
    try:
        yield source.path
    except FileProblem as error:
        reason = error.message.replace(source.path, source.file).replace(source.fork, os.path.basename(source.fork))
        raise Refused(f"{source.file} cannot be verified: {reason}") from error
