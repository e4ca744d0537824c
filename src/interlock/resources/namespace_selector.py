"""Namespace selectors: which namespaces are meant, by their names or by their labels."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from interlock.findings import Findings
from interlock.resources.metadata import Noun
from interlock.resources.naming import MAX_LABEL
from interlock.resources.rules import DnsLabel, Entries, Items, Matches, Names, Unique

MAX_NAMESPACES = 1_000
MAX_REQUIREMENTS = 32
#: The label that every namespace has, on a cluster and here.
NAME_LABEL = "kubernetes.io/metadata.name"

_NAME = "[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = f"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_NAME}"
_KEY_TOLD = (
    "expected the name of a label: letters, digits, '-', '_' and '.', perhaps behind a DNS name"
    " and '/'"
)
_VALUE_TOLD = "expected the value of a label: letters, digits, '-', '_' and '.', at most 63 of them"
_Value = Annotated[str, Matches(f"({_NAME})?", _VALUE_TOLD, longest=MAX_LABEL)]


class SelectorOperator(StrEnum):
    """How a label is compared."""

    #: Its value is among those that are given.
    IN = "In"
    #: It is not there, or its value is not among them.
    NOT_IN = "NotIn"
    #: It is there.
    EXISTS = "Exists"
    #: It is not there.
    DOES_NOT_EXIST = "DoesNotExist"


_COMPARES = (SelectorOperator.IN, SelectorOperator.NOT_IN)


class SelectorRequirement(Noun):
    """What a label has to be."""

    #: The label.
    key: Annotated[str, Matches(_KEY, _KEY_TOLD, longest=317)]
    #: How it is compared.
    operator: SelectorOperator
    #: With what, for `In` and `NotIn`.
    values: Annotated[tuple[_Value, ...], Items(0, MAX_NAMESPACES, "values"), Unique()] = ()


class NamespaceSelector(Noun):
    """Namespaces. One is meant when all that is given holds for it; where nothing is, none is."""

    #: By their names.
    match_names: Annotated[
        tuple[Annotated[str, DnsLabel(MAX_LABEL)], ...],
        Items(0, MAX_NAMESPACES, "namespaces"),
        Unique(),
    ] = ()
    #: By their labels: all of these have these values.
    match_labels: Annotated[
        dict[str, _Value], Entries(0, MAX_REQUIREMENTS, "labels"), Names(_KEY, _KEY_TOLD)
    ] = {}
    #: By their labels: all of these hold.
    match_expressions: Annotated[
        tuple[SelectorRequirement, ...], Items(0, MAX_REQUIREMENTS, "requirements")
    ] = ()

    @property
    def asks_labels(self) -> bool:
        """Whether the labels of a namespace have to be known."""
        return bool(self.match_labels or self.match_expressions)


def check_selector(path: str, selector: NamespaceSelector, to: Findings) -> None:
    """Values are given for the operators that compare them, and for no other."""
    for at, one in enumerate(selector.match_expressions):
        if (one.operator in _COMPARES) is not bool(one.values):
            given = "expected values" if one.operator in _COMPARES else "expected no values"
            where = f"{path}.matchExpressions[{at}].values"
            to.add(where, f"{given} with {one.operator}", list(one.values))


def is_chosen(selector: NamespaceSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a namespace of this name and with these labels is meant."""
    if not selector.asks_labels:
        return name in selector.match_names
    if selector.match_names and name not in selector.match_names:
        return False
    known = {NAME_LABEL: name, **labels}
    return all(known.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(one, known) for one in selector.match_expressions
    )


def _holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case SelectorOperator.IN:
            return value in requirement.values
        case SelectorOperator.NOT_IN:
            return value not in requirement.values
        case SelectorOperator.EXISTS:
            return value is not None
        case SelectorOperator.DOES_NOT_EXIST:
            return value is None


def told(selector: NamespaceSelector) -> tuple[str, ...]:
    """The namespaces that are meant, for people: by name, and then what their labels have to be."""
    labels = [f"{key}={value}" for key, value in selector.match_labels.items()]
    labels += map(_told, selector.match_expressions)
    words = f"those with {' and '.join(labels)}"
    return (*selector.match_names, words) if labels else selector.match_names


def _told(requirement: SelectorRequirement) -> str:
    values = ", ".join(requirement.values)
    match requirement.operator:
        case SelectorOperator.IN:
            return f"{requirement.key} in ({values})"
        case SelectorOperator.NOT_IN:
            return f"{requirement.key} notin ({values})"
        case SelectorOperator.EXISTS:
            return requirement.key
        case SelectorOperator.DOES_NOT_EXIST:
            return f"!{requirement.key}"
