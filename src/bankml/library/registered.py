"""The registry as the library asks it: what a name stands for, and everything that has one."""

from collections.abc import Sequence

from bankml.library.reference import Reference
from bankml.library.registry import Registry


class Registered:
    """The names of `registry`, which has a startup model. What is on the disk counts at every question."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @property
    def startup(self) -> Reference:
        """Raises Refused once its record is gone."""
        return self._registry.resolve(None)

    def resolve(self, name: str) -> Reference:
        """Raises RequestError for what cannot be a name, NotFound, Refused."""
        return self._registry.resolve(name)

    def references(self) -> Sequence[Reference]:
        """The pinned files, the startup model first, then what is derived of them."""
        pinned = [Reference(source.name, source) for source in self._registry.pins()]
        return pinned + [Reference(one.name, one.base, one.layer, one) for one in self._registry.derived()]
