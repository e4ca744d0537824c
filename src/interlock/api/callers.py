"""Callers: who asks, which rights they have, and which Jobs are theirs to see.

The door makes one of what it has proven; nothing that a client says of itself is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

#: The path that everything is below.
EVERYTHING = "/"


class Access(StrEnum):
    """What a name may do."""

    #: See Jobs.
    READ = "read"
    #: See, submit and order about Jobs.
    OPERATE = "operate"
    #: Do everything, everywhere.
    ADMIN = "admin"
    #: Connect as a worker, and do nothing else.
    WORKER = "worker"


#: What else a right includes, itself too.
_INCLUDED: Mapping[Access, frozenset[Access]] = {
    Access.READ: frozenset({Access.READ}),
    Access.OPERATE: frozenset({Access.READ, Access.OPERATE}),
    Access.ADMIN: frozenset(Access),
    Access.WORKER: frozenset({Access.WORKER}),
}


class Caller(Struct, frozen=True, kw_only=True):
    """Who asks. Without rights it is somebody whom nobody has let in yet."""

    #: Empty when the door lets in whom it cannot name.
    name: str = ""
    rights: frozenset[Access] = frozenset()
    #: The targets whose Jobs they may see and order about, beside their own: those with one of
    #: these paths, and those below.
    paths: frozenset[str] = frozenset()

    def may(self, right: Access) -> bool:
        """Whether they have a right, or one that includes it."""
        return any(right in _INCLUDED[held] for held in self.rights)

    @property
    def is_everywhere(self) -> bool:
        """Whether their rights hold for everything, and not for some Jobs alone."""
        return Access.ADMIN in self.rights or EVERYTHING in self.paths

    def covers(self, path: str) -> bool:
        """Whether a target is theirs by their paths; whole parts of a path are compared."""
        if self.is_everywhere:
            return True
        parts = path.strip("/").split("/")
        return any("/".join(parts[:end]) in self.paths for end in range(1, len(parts) + 1))

    def sees(self, owner: str, creator: str, path: str) -> bool:
        """Whether a Job is theirs to see: by its owner, its creator, or the path of its target.

        What somebody does not see is to be refused in the words for what is not there.
        """
        if not self.may(Access.READ):
            return False
        is_own = bool(self.name) and self.name in (owner, creator)
        return is_own or self.is_everywhere or (bool(path) and self.covers(path))


#: Who asks before the door has looked.
NOBODY = Caller()


@lru_cache(maxsize=256)
def trusted(name: str = "") -> Caller:
    """Somebody for whom the door has nothing to leave out: an admin, or whom a cluster let in.

    Nearly every request of a server without tokens comes from one and the same.
    """
    return Caller(name=name, rights=frozenset({Access.ADMIN}))
