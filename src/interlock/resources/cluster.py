"""Kubernetes' own kinds that the embedded server keeps too: Namespace, Node and Lease."""

from __future__ import annotations

from msgspec import field

from interlock.resources.metadata import Moment, NoStatus, Noun, Resource


class NamespaceSpec(Noun):
    """Nothing that a person writes."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Noun):
    """Whether the namespace is in use or on its way out."""

    phase: str = field(default_factory=lambda: "Active")


class Namespace(Resource, tag="Namespace"):
    """A room for names."""

    api_version: str = field(default_factory=lambda: "v1")
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class NodeSpec(Noun):
    """What its administrator says of it."""

    #: Nothing new is to be placed there.
    unschedulable: bool = False


class NodeStatus(Noun):
    """What it has."""

    #: How much of each resource there is for work, as Kubernetes writes it.
    allocatable: dict[str, str] = {}


class Node(Resource, tag="Node"):
    """A machine. The embedded server has one: that on which it runs."""

    api_version: str = field(default_factory=lambda: "v1")
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class LeaseSpec(Noun):
    """Who leads, and until when others wait."""

    holder_identity: str = ""
    lease_duration_seconds: int = 15
    acquire_time: Moment | None = None
    renew_time: Moment | None = None
    lease_transitions: int = 0


class Lease(Resource, tag="Lease"):
    """The leader's claim. It decides who does the work, never what is safe."""

    api_version: str = field(default_factory=lambda: "coordination.k8s.io/v1")
    spec: LeaseSpec = LeaseSpec()
    status: NoStatus = NoStatus()
