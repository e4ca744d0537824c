"""The caches of a control plane: one for each kind that it watches, made from the registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from interlock.control.cache import Cache, Indexer
from interlock.resources.kinds import Kind
from interlock.resources.metadata import Resource

R = TypeVar("R", bound=Resource)

#: The indexes by which resources of a type are found, beside those that all caches have.
Indexes = Mapping[type[Resource], Mapping[str, Indexer[Any]]]


class Caches(dict[str, Cache[Any]]):
    """A cache for each of some kinds: by the name of the kind, or typed, by its noun."""

    def __init__(
        self,
        kinds: Iterable[Kind],
        common: Mapping[str, Indexer[Any]] = {},
        indexes: Iterable[Indexes] = (),
    ) -> None:
        """Make caches that all have the `common` indexes, and each those that are for its noun."""
        # A dictionary itself, for it is asked some fifty times for every Job.
        super().__init__()
        wanted = tuple(indexes)
        for kind in kinds:
            own = {name: find for each in wanted for name, find in each.get(kind.type, {}).items()}
            self[kind.name] = Cache(kind.name, {**own, **common})

    def of(self, noun: type[R]) -> Cache[R]:
        """The cache of a kind, by its noun."""
        return self[str(noun.__struct_config__.tag)]
