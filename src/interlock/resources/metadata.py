"""Object metadata: name, versions, owners and conditions, as every resource has them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, NamedTuple, dataclass_transform

from msgspec import Meta, Struct, field

GROUP = "interlock.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

#: An aware moment; in UTC by the time it is inside.
Moment = Annotated[datetime, Meta(tz=True)]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Noun(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
    gc=False,  # No noun can point back at itself, so the cyclic collector need not look.
):
    """Base of everything that is stored: frozen, keyword-only, strict about its fields."""


class Key(NamedTuple):
    """Which resource: kind, namespace ("" for kinds that have none) and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.lower()}/{place}{self.name}"


_new = tuple.__new__


class OwnerReference(Noun):
    """The resource this one exists for; it is collected when all its owners are gone."""

    api_version: str
    kind: str
    name: str
    uid: str
    #: True for the one owner that manages this resource.
    controller: bool | None = None
    #: Holds back a foreground deletion of the owner until this resource is gone.
    block_owner_deletion: bool | None = None


class Metadata(Noun):
    """Identity and bookkeeping. Users write names, labels, annotations, owners, finalizers."""

    name: str = ""
    #: A name is made of this and a random ending when `name` is empty.
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    #: Opaque to clients, compared for equality only; moves with every write.
    resource_version: str = ""
    #: Moves with the spec, never with the status.
    generation: int = 0
    creation_timestamp: Moment | None = None
    #: The version at which it was created, which tells the order of what was asked for; 0 where the
    #: store does not say, as Kubernetes API servers do not.
    creation_version: int = 0
    deletion_timestamp: Moment | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    #: The resource stays until every one of these has been removed by whoever put it there.
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Noun):
    """One observation about a resource, in the Kubernetes shape."""

    type: str
    status: ConditionStatus
    reason: str
    last_transition_time: Moment
    message: str = ""
    observed_generation: int = 0


class Reference(Noun):
    """Which object is meant."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def key(self) -> Key:
        """Where the store keeps it."""
        return Key(self.kind, self.namespace, self.name)


class Order(StrEnum):
    """What a runtime can be told to do with a task."""

    #: To start it.
    LAUNCH = "Launch"
    #: To stop it.
    STOP = "Stop"


class Trouble(Noun):
    """A decision about this object that could not be made or carried out."""

    #: Which room failed.
    room: str
    message: str
    since: Moment
    #: The order to a task that is denied for now, and given again until it is not.
    order: Order | None = None
    #: What could not be written or made, where that is another object than this one.
    about: Reference | None = None


class Status(Noun):
    """Base of what is told of an object of ours: how it goes, and what is wrong."""

    #: Written by the loop; None when the last look went well.
    trouble: Trouble | None = None


class Resource(Noun, tag_field="kind"):
    """Anything the store holds: a kind, metadata, and for most a spec and a status."""

    #: A factory and not a plain default, so that it is always written.
    api_version: str = field(default_factory=lambda: API_VERSION)
    metadata: Metadata = Metadata()

    @property
    def kind(self) -> str:
        """The kind this resource is stored under."""
        return str(self.__struct_config__.tag)

    @property
    def key(self) -> Key:
        """Where the store keeps this resource."""
        metadata = self.metadata
        # Asked so often that the detour through the named tuple's own constructor shows.
        return _new(Key, (self.__struct_config__.tag, metadata.namespace, metadata.name))

    @property
    def version(self) -> int:
        """The resource version as a number: versions of one store only ever rise."""
        return int(self.metadata.resource_version or 0)

    @property
    def is_going(self) -> bool:
        """Whether deletion was asked for and finalizers still hold the resource."""
        return self.metadata.deletion_timestamp is not None


class NoStatus(Noun):
    """The status of kinds that have none."""
