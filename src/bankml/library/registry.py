"""The models that have a name: every pinned GGUF of a folder, and the models derived from them.

The folder is read at every lookup, so a new pin is available at once and a changed one is noticed. No model file is
read here: a name gives a `Reference`, and the file is verified when it is loaded.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bankml.errors import BankmlError, FileProblem, NotFound, Refused
from bankml.library.manifest import SUFFIX, manifest_path, read_manifest
from bankml.library.names import DERIVED_NAME, LATEST, aliases, checked_name, names, quoted
from bankml.library.pins import ForkFolder, PinRecord, SkippedRecord, folder_problem, listed
from bankml.library.reference import Derived, PinnedFile, Reference

ENVIRONMENT = "BANKML_FORKS"
MOST_LISTED = 20


def default_folder() -> str:
    """`$BANKML_FORKS`, else ~/.local/share/bankml/forks."""
    return os.environ.get(ENVIRONMENT) or str(Path.home() / ".local" / "share" / "bankml" / "forks")


class Registry:
    """Names the pins and the derived models of `folder`, after the startup model.

    `folder` None: only the startup model, whose record is not read again. `startup` None (for `create`): only the
    folder. A model file is looked up beside the startup model, then in `folder`, then in `also`. Thread-safe.
    """

    def __init__(
        self,
        folder: str | None,
        startup: PinnedFile | None = None,
        also: Sequence[str] = (),
        *,
        any_model: bool = False,
    ) -> None:
        """`any_model`: an unknown name means the startup model, as in llama-server."""
        self.folder = folder
        self._any_model = any_model
        self._startup = startup
        beside = [os.path.dirname(startup.path)] if startup is not None and startup.path else []
        self._places = [*beside, *([folder] if folder is not None else []), *also]
        self._forks = ForkFolder()

    def pins(self) -> list[PinnedFile]:
        """Every pinned GGUF, the startup model first, then by FORK.json file name and position.

        Of two with the same name the first counts.
        """
        return [self._located(pin) for pin in self._pins()[0].values()]

    def derived(self) -> list[Derived]:
        """Every usable derived model, by name."""
        return self._derived()[0]

    def problems(self) -> list[SkippedRecord]:
        """Unusable entries of the folder, with the reason: damaged FORK.json files, records without a sha256,
        manifests that were edited or whose base changed."""
        return self._pins()[1] + self._derived()[1]

    def references(self) -> list[Reference]:
        """Every pin and every derived model, each once, the startup model first."""
        pins = [Reference(source.name, source) for source in self.pins()]
        return pins + [Reference(one.name, one.base, one.layer, one) for one in self.derived()]

    def names_of(self, source: PinnedFile) -> tuple[str, ...]:
        """Every current name of `source`, its own first."""
        found = self._names(self._pins()[0])
        return tuple(name for name in names(source.file) if found.get(name) == source.file)

    def is_pin(self, name: str) -> bool:
        """Whether `name` (as `checked_name` gives it) is a name or alias of a pinned file."""
        return name in self._names(self._pins()[0])

    def resolve(self, name: str | None) -> Reference:
        """The model named `name`; None is the startup model. Loads nothing; the file need not exist.

        Raises RequestError for an invalid name, NotFound for an unknown one, Refused for a derived model whose manifest
        was edited or whose base is not the one it was made of, and for the startup model if its record was removed.
        """
        pins, problems = self._pins()
        if name is None:
            if self._startup is None:
                raise NotFound("no model is named, and there is no startup model")
            return self._startup_reference(self._startup, pins)
        requested = checked_name(name)
        file = self._names(pins).get(requested)
        if file is not None and file in pins:
            source = self._located(pins[file])
            return Reference(source.name, source)
        if file is not None and self._startup is not None:
            return self._startup_reference(self._startup, pins)
        bare = requested.removesuffix(LATEST)
        if self.folder is not None and DERIVED_NAME.fullmatch(bare):
            path = manifest_path(self.folder, bare)
            if os.path.lexists(path):
                derived = self._derived_at(path, pins)
                return Reference(derived.name, derived.base, derived.layer, derived)
        if self._any_model and self._startup is not None:
            return self._startup_reference(self._startup, pins)
        raise NotFound(f"unknown model {quoted(name)}; {self._available(pins, problems)}")

    def _startup_reference(self, startup: PinnedFile, pins: Mapping[str, PinRecord]) -> Reference:
        pin = pins.get(startup.file)
        if pin is None:
            raise Refused(f"{startup.file} has no sha256 record in FORK.json: unpinned, refused")
        return Reference(startup.name, self._located(pin))

    def _available(self, pins: Mapping[str, PinRecord], problems: Sequence[SkippedRecord]) -> str:
        found = [_name(file) for file in pins]
        if self.folder is not None:
            with suppress(FileProblem):  # which is among the problems
                found += [name.removesuffix(SUFFIX) for name in listed(self.folder) if name.endswith(SUFFIX)]
        more = f" and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
        there = f"available: {', '.join(found[:MOST_LISTED])}{more}" if len(found) > 1 else ""
        there = there or (f"this server serves {found[0]!r}" if found else "no model is pinned")
        skipped = f" (skipped {problems[0].file}: {problems[0].reason})" if problems else ""
        return there + skipped

    def _names(self, pins: Mapping[str, PinRecord]) -> dict[str, str]:
        """Every name of a file, and the file: the one table for all lookups and lists. The startup model keeps its
        names even without a record, so that no other model takes them."""
        return aliases(pins if self._startup is None else [self._startup.file, *pins])

    # The folder as it is now

    def _pins(self) -> tuple[dict[str, PinRecord], list[SkippedRecord]]:
        """The pins by file name, one for each model name, and the skipped entries."""
        found: list[PinRecord] = []
        problems: list[SkippedRecord] = []
        if self._startup is not None:
            try:
                found += self._startup_pin(self._startup)
            except FileProblem as error:
                problems.append(SkippedRecord(os.path.basename(self._startup.fork), error.public_message))
        if self.folder is not None:
            try:
                pins, odd = self._forks.pins(self.folder)
                found, problems = found + pins, problems + odd
            except FileProblem as error:
                problems.append(folder_problem(self.folder, error))
        winners: dict[str, PinRecord] = {}
        for pin in found:
            winners.setdefault(_name(pin.file), pin)
        return {pin.file: pin for pin in winners.values()}, problems

    def _startup_pin(self, startup: PinnedFile) -> list[PinRecord]:
        """The startup model's current record; without a folder, the one from when the server started."""
        if self.folder is None:
            return [PinRecord(startup.file, startup.sha256, startup.fork)]
        sha256 = self._forks.fork(startup.fork).pinned_sha256(startup.file)
        return [] if sha256 is None else [PinRecord(startup.file, sha256, startup.fork)]

    def _located(self, pin: PinRecord) -> PinnedFile:
        return PinnedFile(_name(pin.file), pin.file, pin.sha256, pin.fork, self._find(pin.file))

    def _find(self, file: str) -> str | None:
        if self._startup is not None and file == self._startup.file:
            path = self._startup.path
            return path if path is not None and os.path.isfile(path) else None
        for folder in self._places:
            path = os.path.join(folder, file)
            if os.path.isfile(path):
                return path
        return None

    def _derived(self) -> tuple[list[Derived], list[SkippedRecord]]:
        if self.folder is None:
            return [], []
        pins = self._pins()[0]
        pinned = self._names(pins)
        found: list[Derived] = []
        problems: list[SkippedRecord] = []
        try:
            manifests = [name for name in listed(self.folder) if name.endswith(SUFFIX)]
        except FileProblem:
            return [], []  # the pins' problems say so
        for name in manifests:
            if name.removesuffix(SUFFIX) in pinned:
                problems.append(SkippedRecord(name, f"a pinned file has the name {quoted(name.removesuffix(SUFFIX))}"))
                continue
            try:
                found.append(self._derived_at(os.path.join(self.folder, name), pins))
            except BankmlError as error:
                problems.append(SkippedRecord(name, error.public_message))
        return found, problems

    def _derived_at(self, path: str, pins: Mapping[str, PinRecord]) -> Derived:
        """The derived model whose manifest is at `path`, over its base as it is pinned now. Raises Refused."""
        manifest = read_manifest(path)
        was, pin = manifest.base, pins.get(manifest.base.file)
        if pin is None:
            raise Refused(f"{manifest.name} was made of {was.file}, which no FORK.json pins any more: refused")
        if pin.sha256 != was.sha256:
            raise Refused(
                f"{manifest.name} was made of {was.file} pinned to {was.sha256}, which is now pinned to {pin.sha256}: "
                "refused"
            )
        return manifest.derived(self._located(pin))


def _name(file: str) -> str:
    return names(file)[0]
