"""From a verified file to a loaded model: the one place where the rooms of a model are put together."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from bankml.engine.checkpoints import window_checkpoints
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
from bankml.text.special_content import ContentSpecial
from bankml.text.template import ChatTemplate
from bankml.text.tokenizer import Tokenizer


def load(
    verified: Verified,
    n_ctx: int,
    threads: int | None = None,
    source: PinnedFile | None = None,
    environment: Mapping[str, str] = os.environ,
    tokenizer: Tokenizer | None = None,
    reasoning: bool = False,
    content_special: ContentSpecial = "parse",
) -> Resident:
    """Loads a model; the weights are opened last, when nothing else can be refused any more.

    `reasoning`: it reasons where it can. `n_ctx` is the context in tokens; `threads` None means the model's own choice;
    `source` is what was verified, if it
    was requested by name; `environment` has the BANKML_ variables; `tokenizer` is that of the file's header, if it
    exists already. Raises Refused, naming the file and the key or tensor, for an unsupported model.
    """
    with named(verified.name):
        resident = _load(verified, n_ctx, threads, source or PinnedFile.of(verified), environment, tokenizer, reasoning)
    resident.content_special = content_special
    return resident


def _load(
    verified: Verified,
    n_ctx: int,
    threads: int | None,
    source: PinnedFile,
    environment: Mapping[str, str],
    made: Tokenizer | None,
    reasoning: bool,
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
        engine=Engine(
            model, tokenizer, prompt_cache=prompt_cache(limit, model.n_ctx), windows=window_checkpoints(model)
        ),
        tokens=tokenizer,
        template=template,
        defaults=defaults,
        reasoning=reasoning,
    )


def open_library(
    verified: Verified,
    n_ctx: int,
    threads: int | None = None,
    known: Names | None = None,
    environment: Mapping[str, str] = os.environ,
    default_keep: float | None = FOR_GOOD,
    tokenizer: Tokenizer | None = None,
    reasoning: bool = False,
    content_special: ContentSpecial = "parse",
) -> Library:
    """The library whose startup model is the verified file, loaded now; every model has a context of `n_ctx` tokens.

    `known` resolves all other names; None: there are none. `default_keep` is Library's, `tokenizer` and `reasoning`
    are `load`'s.
    Raises what `load` raises.
    """
    resident = load(verified, n_ctx, threads, None, environment, tokenizer, reasoning, content_special)
    names = known or Registry(None, resident.source)
    opener = VerifyingOpener(n_ctx, threads, environment, reasoning=reasoning, content_special=content_special)
    return Library(names, opener, resident, default_keep)


@dataclass(frozen=True)
class VerifyingOpener:
    """Verifies and loads models, each with a context of `n_ctx` tokens; the other fields are `load`'s."""

    n_ctx: int
    threads: int | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    known: FactsCache = field(default_factory=FactsCache)
    reasoning: bool = False
    content_special: ContentSpecial = "parse"

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
            return load(
                verified, self.n_ctx, self.threads, source, self.environment, None, self.reasoning, self.content_special
            )


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
