"""The kinds there are: one entry feeds the store, the API, the command line and the docs."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from interlock.resources.calendar import Calendar
from interlock.resources.cluster import Lease, Namespace
from interlock.resources.codec import decoder_for
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.lock import Lock
from interlock.resources.metadata import GROUP, VERSION, Resource


class Kind(Struct, frozen=True, kw_only=True):
    """Everything about a kind that is not in its type."""

    type: type[Resource]
    plural: str
    group: str = GROUP
    version: str = VERSION
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    #: Whether the status is written apart from the spec.
    has_status: bool = True
    #: People may read but not write it.
    made_by_system: bool = False

    @property
    def name(self) -> str:
        """The kind's name, as in `kind: Job`."""
        return str(self.type.__struct_config__.tag)

    @property
    def singular(self) -> str:
        """The kind's name as one would say it."""
        return self.name.lower()

    @property
    def api_version(self) -> str:
        """The group and version as written in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


JOBS = Kind(type=Job, plural="jobs", short_names=("ijob",), categories=("all", "interlock"))
JOB_CONFIGS = Kind(
    type=JobConfig, plural="jobconfigs", short_names=("jc",), categories=("all", "interlock")
)
CONTROLLED_JOBS = Kind(
    type=ControlledJob,
    plural="controlledjobs",
    short_names=("ctj",),
    categories=("all", "interlock"),
)
CALENDARS = Kind(
    type=Calendar,
    plural="calendars",
    short_names=("cal",),
    categories=("interlock",),
    has_status=False,
)
LOCKS = Kind(type=Lock, plural="locks", categories=("interlock",), made_by_system=True)
NAMESPACES = Kind(
    type=Namespace,
    plural="namespaces",
    group="",
    version="v1",
    short_names=("ns",),
    namespaced=False,
)
LEASES = Kind(
    type=Lease, plural="leases", group="coordination.k8s.io", version="v1", has_status=False
)

#: Every kind, by its name.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (JOBS, JOB_CONFIGS, CONTROLLED_JOBS, CALENDARS, LOCKS, NAMESPACES, LEASES)
}

#: One decoder per kind, made once.
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    name: decoder_for(kind.type) for name, kind in KINDS.items()
}


def decode(kind: str, data: bytes | str) -> Resource:
    """Read a stored resource of a known kind.

    Raises:
        msgspec.ValidationError: It is not one.
    """
    resource: Resource = _DECODERS[kind].decode(data)
    return resource
