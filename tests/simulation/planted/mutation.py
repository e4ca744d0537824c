"""Mutations: rules that somebody might forget, planted into the product one at a time.

Each names the function that it breaks, the rule that is then forgotten, the promise that must
notice, and the worlds that are run until it does. To add one is to write one function:

    @mutation(
        "A lock has no more holders than its limit.",
        Seam("interlock.admission.claims.claim", "ClaimView.is_free"),
        caught_by="NeverTwice",
        in_worlds=busy(World),
    )
    def limit_is_ignored(_: Any) -> Any:
        return property(lambda _: True)

It is given what is really there and returns what is put in its place; with several seams it is
given as many, and returns as many. The name of the function is the name of the bug.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from inspect import getattr_static
from types import ModuleType
from typing import Any

import pytest
from msgspec import Struct

from support.simulation.judge import BrokenPromiseError
from support.simulation.world import World

#: Makes the world of a seed.
Worlds = Callable[[int], World]
#: Is given what is really there, and returns what is put in its place.
Planted = Callable[..., Any]

#: So many worlds are tried for one bug, if nothing else is said.
MOST_WORLDS = 120


class UnknownSeamError(Exception):
    """A mutation breaks something that is not there, perhaps because it has another name now."""


class Seam(Struct, frozen=True):
    """Something of the product that can be broken.

    Named in the module that defines it, a function is broken for everybody who imported it; named
    in a module that imported it, for that module alone. The judge is left alone: what its promises
    use of the product stays as it is.
    """

    #: A dotted path.
    module: str
    #: `decide_job`, or `ClaimView.is_free`.
    name: str

    def __post_init__(self) -> None:
        self.find()

    def find(self) -> tuple[object, str, Any]:
        """Who holds it, under which name, and what it is.

        Raises:
            UnknownSeamError: It is not there.
        """
        try:
            holder: object = import_module(self.module)
        except ModuleNotFoundError as error:
            raise UnknownSeamError(f"{self.module}: there is no such module") from error
        *path, name = self.name.split(".")
        for part in path:
            holder = self._part(holder, part)
        return holder, name, self._part(holder, name)

    def _part(self, holder: object, name: str) -> Any:
        try:
            return getattr_static(holder, name)
        except AttributeError as error:
            near = get_close_matches(name, dir(holder), n=1)
            hint = f"; is it {near[0]} now?" if near else ""
            raise UnknownSeamError(f"{self.module} has no {self.name}{hint}") from error

    def places(self) -> Iterator[tuple[object, str]]:
        """Where it stands: its own place, and every module of the product that imported it."""
        holder, name, found = self.find()
        yield holder, name
        if not isinstance(holder, ModuleType) or _home_of(found) != self.module:
            return
        for path, module in tuple(sys.modules.items()):
            if path.startswith("interlock.") and not path.startswith("interlock.testing."):
                others = (other for other, held in vars(module).items() if held is found)
                yield from [(module, other) for other in others]


def _home_of(found: object) -> str:
    """The module that defines a function; empty for a mere value."""
    return str(getattr(found, "__module__", "")) if callable(found) else ""


class Mutation(Struct, frozen=True, kw_only=True):
    """A bug: which rule is forgotten, how, and who notices."""

    name: str
    #: The rule that is forgotten, as a sentence.
    rule: str
    seams: tuple[Seam, ...]
    planted: Planted
    #: The promise that must notice.
    caught_by: str
    in_worlds: Worlds
    most_worlds: int = MOST_WORLDS
    #: The seed of a world that is known to notice, tried before the others; it only saves the
    #: search, and may be found anew when worlds have changed.
    seen_in: int = 0

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Have the bug in the product for a while."""
        really = [seam.find()[2] for seam in self.seams]
        made = self.planted(*really)
        instead = made if len(self.seams) > 1 else (made,)
        with pytest.MonkeyPatch.context() as patch:
            for seam, thing in zip(self.seams, instead, strict=True):
                for holder, name in tuple(seam.places()):
                    patch.setattr(holder, name, thing)
            yield


MUTATIONS: list[Mutation] = []


def mutation(
    rule: str,
    *seams: Seam,
    caught_by: str,
    in_worlds: Worlds,
    most_worlds: int = MOST_WORLDS,
    seen_in: int = 0,
) -> Callable[[Planted], Planted]:
    """Declare what a function plants. It may be declared more than once, for several promises."""

    def declare(planted: Planted) -> Planted:
        declared = Mutation(
            name=f"{planted.__name__}-{caught_by}",
            rule=rule,
            seams=seams,
            planted=planted,
            caught_by=caught_by,
            in_worlds=in_worlds,
            most_worlds=most_worlds,
            seen_in=seen_in,
        )
        MUTATIONS.append(declared)
        return planted

    return declare


def breaches(planted: Mutation) -> Iterator[BrokenPromiseError]:
    """Every promise that is broken with a bug in place, world after world."""
    with planted.in_place():
        for seed in dict.fromkeys((planted.seen_in, *range(planted.most_worlds))):
            outcome = planted.in_worlds(seed).run()
            if outcome.broken is not None:
                yield outcome.broken
