"""From a verified file to a model that answers: the one place where the rooms of a model are put together."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from bankml.engine.completion import ENGINE, Engine
from bankml.engine.memory import configured_cache_limit, give_back_memory
from bankml.engine.prompt_cache import prompt_cache
from bankml.errors import FileMissing, FileProblem, PinMismatch, Refused, named
from bankml.gate.contents import memory_for
from bankml.gate.guard import guard, require_model
from bankml.gate.identity import FileIdentity
from bankml.gate.verify import Verified, verify
from bankml.library.facts import FactsCache, FileFacts
from bankml.library.reference import PinnedFile
from bankml.library.registry import Registry
from bankml.library.residency import FOR_GOOD, Library, Names
from bankml.library.resident import Resident
from bankml.library.supported import require_supported, template_source
from bankml.model.model import Model
from bankml.receipt.receipt import Provenance
from bankml.sampling.parameters import model_defaults
from bankml.text.template import ChatTemplate
from bankml.text.tokenizer import Tokenizer


def load(
    verified: Verified,
    n_ctx: int,
    threads: int | None = None,
    source: PinnedFile | None = None,
    environment: Mapping[str, str] = os.environ,
    tokenizer: Tokenizer | None = None,
) -> Resident:
    """Makes everything an answer needs; the weights are opened last, when nothing else can refuse any more.

    `n_ctx` is the context in tokens; `threads` None means the model's own choice; `source` is what was verified, where
    that was asked for by name; `environment` is where the BANKML_ variables are looked up; `tokenizer` is that of the
    file's header, where it has been made already. Raises Refused, naming the file and the key or tensor, for a model
    that is not played.
    """
    with named(verified.name):
        return _load(verified, n_ctx, threads, source or PinnedFile.of(verified), environment, tokenizer)


def _load(
    verified: Verified,
    n_ctx: int,
    threads: int | None,
    source: PinnedFile,
    environment: Mapping[str, str],
    made: Tokenizer | None,
) -> Resident:
    tokenizer = made or Tokenizer.from_header(verified.header)
    template = ChatTemplate(template_source(verified.header), tokenizer.bos_text, tokenizer.eos_text)
    defaults = model_defaults(verified.header.metadata)
    limit = configured_cache_limit(environment)
    model = Model.open(verified, n_ctx, threads, environment)
    give_back_memory()
    return Resident(
        source=source,
        verified=verified,
        provenance=Provenance(ENGINE, verified.sha256, verified.verdict.kind),
        engine=Engine(model, tokenizer, prompt_cache=prompt_cache(limit, model.n_ctx)),
        tokens=tokenizer,
        template=template,
        defaults=defaults,
    )


def open_library(
    verified: Verified,
    n_ctx: int,
    threads: int | None = None,
    known: Names | None = None,
    environment: Mapping[str, str] = os.environ,
    default_keep: float | None = FOR_GOOD,
    tokenizer: Tokenizer | None = None,
) -> Library:
    """The library whose startup model is the verified file, loaded now, each model with a context of `n_ctx` tokens.

    `known` are the names of all others; None: there are none. `default_keep` is as Library takes it, `tokenizer` as
    `load` does. Raises what `load` raises.
    """
    resident = load(verified, n_ctx, threads, environment=environment, tokenizer=tokenizer)
    names = known or Registry(None, resident.source)
    return Library(names, VerifyingOpener(n_ctx, threads, environment), resident, default_keep)


@dataclass(frozen=True)
class VerifyingOpener:
    """Makes sources resident, each with a context of `n_ctx` tokens; the rest as `load` takes it."""

    n_ctx: int
    threads: int | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    known: FactsCache = field(default_factory=FactsCache)

    def facts(self, source: PinnedFile) -> FileFacts:
        """What is known of `source`, as long as its file stays as it is."""
        return self.known.facts(source)

    def judge(self, source: PinnedFile) -> None:
        """Raises Refused or Truncated for what the file's header alone shows, its absence, or a hash that was another
        than its record's."""
        with _told(source) as path, named(source.file):
            require_supported(require_model(guard(path)))
            if mismatch := self.known.mismatch(source):
                raise PinMismatch(mismatch)

    def open(self, source: PinnedFile) -> Resident:
        """Verifies and loads what `source` stands for. Raises Refused, Truncated."""
        with _told(source) as path:
            identity = FileIdentity.of(path)
            try:
                verified = verify(path, source.fork, name=source.file, require=require_supported, into=memory_for)
            except PinMismatch as error:
                self.known.mismatched(source, identity, error.public_message)
                raise
            if verified.sha256 != source.sha256:
                raise Refused(f"{source.file} is pinned to {verified.sha256} now, and was to {source.sha256}: refused")
            return load(verified, self.n_ctx, self.threads, source, self.environment)


@contextmanager
def _told(source: PinnedFile) -> Iterator[str]:
    """Where the file of `source` is; a problem with it or its record is a refusal that tells no path."""
    if source.path is None:
        raise FileMissing(f"{source.file} is pinned, but the file is not here: refused")
    try:
        yield source.path
    except FileProblem as error:
        reason = error.message.replace(source.path, source.file).replace(source.fork, os.path.basename(source.fork))
        raise Refused(f"{source.file} cannot be verified: {reason}") from error
