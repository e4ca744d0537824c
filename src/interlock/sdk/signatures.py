"""Signatures of steps, undos and operations: their parameters by name, bound and validated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, get_type_hints

from interlock.errors import Problem
from interlock.findings import did_you_mean
from interlock.sdk.app_errors import ArgumentsError, DeclarationError
from interlock.sdk.values import NotOfTypeError, is_readable, read_as

#: The name of the first parameter of whatever does work.
CONTEXT = "ctx"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Signature:
    """The parameters of a function, the context left out."""

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        """Read the parameters of a function; `what` is what people call it.

        Raises:
            DeclarationError: One of them has no name to be called by.
        """
        if isinstance(function, type) or not hasattr(function, "__code__"):
            raise DeclarationError(f"{what}: expected a function, found {function!r}")
        self.what = what
        self._function = function
        found = list(inspect.signature(function).parameters.values())
        self.takes_context = bool(found) and found[0].name == CONTEXT
        self.parameters = {one.name: one for one in found[self.takes_context :]}
        for one in self.parameters.values():
            if one.kind not in _NAMED:
                raise DeclarationError(
                    f"{what}: parameter {one}: expected one that can be given by its name"
                )

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The annotations, each as the type that it names.

        Raises:
            DeclarationError: One names nothing that is known, or no type that JSON can be read as.
        """
        try:
            hints = get_type_hints(self._function, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError) as error:
            raise DeclarationError(f"{self.what}: an annotation cannot be read: {error}") from None
        for name in self.parameters:
            told = is_readable(hints[name]) if name in hints else ""
            if told:
                raise DeclarationError(f"{self.what}: parameter {name}: {told}")
        return hints

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments by their names, with the defaults of those that were left out.

        Raises:
            ArgumentsError: Some are missing, unknown or too many.
        """
        places = [one.name for one in self.parameters.values() if one.kind is not one.KEYWORD_ONLY]
        if len(args) > len(places):
            message = f"expected at most {len(places)} without a name"
            raise ArgumentsError(self.what, [Problem("arguments", message, len(args))])
        given = dict(zip(places, args, strict=False))
        twice = [Problem(name, "is given twice") for name in kwargs if name in given]
        if twice:
            raise ArgumentsError(self.what, twice)
        return self.complete({**given, **kwargs})

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by their names, with defaults.

        Raises:
            ArgumentsError: Some are missing or unknown.
        """
        problems = [
            Problem(name, f"there is no such parameter{did_you_mean(name, self.parameters)}")
            for name in given
            if name not in self.parameters
        ]
        made = {}
        for name, one in self.parameters.items():
            if name in given:
                made[name] = given[name]
            elif one.default is not one.empty:
                made[name] = one.default
            else:
                problems.append(Problem(name, "is missing"))
        if problems:
            raise ArgumentsError(self.what, problems)
        return made

    def typed(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that came as JSON, each as the type of its parameter.

        Raises:
            ArgumentsError: Some are not of their types; it says where.
        """
        made, problems = {}, []
        for name, value in args.items():
            try:
                made[name] = read_as(value, self.hints.get(name, Any), name)
            except NotOfTypeError as error:
                problems.append(error.problem)
        if problems:
            raise ArgumentsError(self.what, problems)
        return made
