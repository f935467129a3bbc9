"""The models that may be asked for by name: every pinned GGUF of a folder, and the models derived from them."""

from dataclasses import dataclass

from bankml.library.reference import Derived, Reference, Source


@dataclass(frozen=True)
class Problem:
    """A FORK.json or a manifest that was passed over, and why, in one sentence."""

    file: str
    reason: str


class Registry:
    """Names the pins of `folder`; `folder` None: the startup model alone. Reads what is on the disk at every lookup."""

    def __init__(self, folder: str | None, startup: Source) -> None:
        self.folder = folder
        self.startup = startup

    def pins(self) -> list[Source]:
        """Every pinned GGUF, the startup model first, then by the names of the FORK.json files, in their order."""
        return [self.startup]

    def derived(self) -> list[Derived]:
        """Every derived model that can be asked for, by name."""
        return []

    def problems(self) -> list[Problem]:
        """What lies in the folder and was passed over."""
        return []

    def resolve(self, name: str | None) -> Reference:
        """What `name` stands for; None is the startup model. Loads nothing.

        Raises RequestError for what cannot be a name, NotFound for one that is no model's, Refused for a derived model
        whose manifest was edited or whose base is not the one it was made of.
        """
        return Reference(self.startup.name, self.startup)
