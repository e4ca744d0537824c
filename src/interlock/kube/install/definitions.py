"""The custom resource definitions of our kinds, made from their types."""

from __future__ import annotations

from interlock.kube.install.installation import Manifest, labelled
from interlock.kube.install.schemas import schema_of
from interlock.resources.describe.columns import Column
from interlock.resources.kinds import Kind, our_kinds


def definitions() -> list[Manifest]:
    """One definition for each kind of ours."""
    return [definition(kind) for kind in our_kinds()]


def definition(kind: Kind) -> Manifest:
    """The definition of one kind."""
    name = f"{kind.plural}.{kind.group}"
    made = labelled("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, "")
    made["spec"] = {
        "group": kind.group,
        "names": _names(kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [_version(kind)],
    }
    return made


def _names(kind: Kind) -> Manifest:
    names: Manifest = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _version(kind: Kind) -> Manifest:
    selectable = [{"jsonPath": path} for path in kind.selectable]
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}} if kind.has_status else {},
        "additionalPrinterColumns": [
            _column(column)
            for column in kind.columns
            if column.name != "Name"  # every list has it
        ],
        **({"selectableFields": selectable} if selectable else {}),
        "schema": {"openAPIV3Schema": schema_of(kind.name)},
    }


def _column(column: Column) -> Manifest:
    if column.name == "Age":
        return {"name": "Age", "type": "date", "jsonPath": column.at.path}
    shown: Manifest = {"name": column.name, "type": column.type}
    shown["description"] = column.at.nearest or column.description
    shown["jsonPath"] = column.at.path
    return shown | ({"priority": column.priority} if column.priority else {})
