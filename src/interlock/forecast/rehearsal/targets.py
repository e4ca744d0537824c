"""Which object is meant: kind/name as people type it, or its parts."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.findings import did_you_mean
from interlock.forecast.rehearsal.script import Wanted
from interlock.resources.kinds import KINDS, Kind
from interlock.resources.metadata import Key, Resource

_BY_WORD: dict[str, Kind] = {
    word: kind
    for kind in KINDS.values()
    for word in (kind.singular, kind.plural, *kind.short_names)
}


class Target(Struct, frozen=True):
    """A kind, and one object of it, or all."""

    kind: Kind
    namespace: str
    #: Empty for all.
    name: str

    @property
    def key(self) -> Key:
        """Where the object is."""
        return Key(self.kind.name, self.namespace, self.name)

    @property
    def wanted(self) -> Wanted:
        """The same in names."""
        return Wanted(kind=self.kind.name, namespace=self.namespace, name=self.name)


def read_target(given: object, namespace: str) -> Target:
    """Read `kind`, `kind/name`, `namespace/kind/name` or {kind, name, namespace}.

    Raises:
        ValueError: It is none of these.
    """
    if isinstance(given, dict):
        return _from_parts(given, namespace)
    if not isinstance(given, str) or not given:
        raise ValueError("expected kind/name, or {kind, name, namespace}")
    word, _, name = given.partition("/")
    if name.count("/") == 1:
        namespace, word, name = word, *name.split("/")
    return _target(word, namespace, name)


def _from_parts(given: dict[Any, Any], namespace: str) -> Target:
    for name, value in given.items():
        if name not in ("kind", "name", "namespace"):
            near = did_you_mean(name, ("kind", "name", "namespace"))
            raise ValueError(f"unknown field {name}{near}; expected kind, name, namespace")
        if not isinstance(value, str):
            raise ValueError(f"expected a text as {name}")
    return _target(given.get("kind", ""), given.get("namespace", namespace), given.get("name", ""))


def _target(word: str, namespace: str, name: str) -> Target:
    kind = _BY_WORD.get(word.lower())
    if kind is None:
        known = sorted(kind.singular for kind in KINDS.values())
        near = did_you_mean(word.lower(), _BY_WORD) or f"; there are {', '.join(known)}"
        raise ValueError(f"there is no kind {word!r}{near}")
    return Target(kind, namespace if kind.namespaced else "", name)


def placed(resource: Resource, namespace: str) -> Resource:
    """The resource in its namespace, or in the usual one."""
    if not KINDS[resource.kind].namespaced or resource.metadata.namespace:
        return resource
    return replace(resource, metadata=replace(resource.metadata, namespace=namespace))


def with_version(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with the apiVersion of its kind, when it names none."""
    kind = manifest.get("kind")
    if "apiVersion" in manifest or not isinstance(kind, str) or kind not in KINDS:
        return manifest
    return {"apiVersion": KINDS[kind].api_version, **manifest}
