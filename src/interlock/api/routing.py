"""Which resource a path means. The paths are those of a Kubernetes API server."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from interlock.resources.kinds import KINDS, Kind
from interlock.resources.metadata import Key

#: Longer paths name nothing that there is.
MAX_PATH = 2048

_BY_PLACE = {(kind.group, kind.version, kind.plural): kind for kind in KINDS.values()}


class Target(Struct, frozen=True):
    """A kind, and which of its resources."""

    kind: Kind
    #: None means every namespace, or a kind that has none.
    namespace: str | None
    #: Empty means all of them.
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """Where the store keeps the one resource that is meant."""
        return Key(self.kind.name, self.namespace or "", self.name)


@lru_cache(maxsize=8192)
def find_target(path: str) -> Target | None:
    """What a path under /api or /apis means, or None when it means nothing."""
    if len(path) > MAX_PATH:
        return None
    match path.rstrip("/").split("/")[1:]:
        case ["api", version, *rest]:
            return _find("", version, rest)
        case ["apis", group, version, *rest]:
            return _find(group, version, rest) if group else None
    return None


def _find(group: str, version: str, rest: list[str]) -> Target | None:
    if not all(rest):
        return None
    match rest:
        case ["namespaces", namespace, plural, *more] if (group, version, plural) in _BY_PLACE:
            kind = _BY_PLACE[group, version, plural]
            return _named(kind, namespace, more) if kind.namespaced else None
        case [plural, *more] if (group, version, plural) in _BY_PLACE:
            kind = _BY_PLACE[group, version, plural]
            if kind.namespaced and more:
                return None
            return _named(kind, None, more)
    return None


def _named(kind: Kind, namespace: str | None, more: list[str]) -> Target | None:
    match more:
        case []:
            return Target(kind, namespace)
        case [name]:
            return Target(kind, namespace, name)
        case [name, "status"] if kind.has_status:
            return Target(kind, namespace, name, "status")
    return None
