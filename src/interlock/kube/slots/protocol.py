"""The extender protocol: how a Kubernetes scheduler asks about a pod, and how it is answered.

A scheduler that knows that we cache nodes sends names, another one whole nodes and victims; both
are read, and answered in kind. An answer is always one of these: an error would end the pod's turn
without a try to make room for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from interlock.errors import BadRequestError
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import Slot

T = TypeVar("T")

#: A thousand nodes in full are some tens of megabytes.
MAX_BODY_BYTES = 64 << 20


class _Named(Struct):
    name: str = ""


class _NodeHead(Struct):
    metadata: _Named


class NodeList(Struct):
    """Nodes in full, as they were sent."""

    items: list[msgspec.Raw] = []
    metadata: msgspec.Raw | UnsetType = UNSET


class FilterArgs(Struct, frozen=True):
    """Which of these nodes suit a pod?"""

    pod: SlotPod = field(name="Pod")
    nodes: NodeList | None = field(name="Nodes", default=None)
    node_names: list[str] | None = field(name="NodeNames", default=None)


class FilterResult(Struct, frozen=True, kw_only=True):
    """These, and why not the others."""

    nodes: NodeList | None = field(name="Nodes", default=None)
    node_names: list[str] | None = field(name="NodeNames", default=None)
    failed: Mapping[str, str] = field(name="FailedNodes", default={})
    #: No eviction helps there.
    unresolvable: Mapping[str, str] = field(name="FailedAndUnresolvableNodes", default={})
    error: str = field(name="Error", default="")


class _Uid(Struct):
    uid: str = ""


class _Victim(Struct):
    metadata: _Uid


class Victims(Struct, frozen=True):
    """Pods in full that would go from a node."""

    pods: list[_Victim] | None = field(name="Pods", default=None)
    budgets_broken: int = field(name="NumPDBViolations", default=0)


class MetaPod(Struct, frozen=True):
    """A pod of which the uid is enough."""

    uid: str = field(name="UID")


class MetaVictims(Struct, frozen=True):
    """Pods that go from a node."""

    pods: list[MetaPod] | None = field(name="Pods", default=None)
    budgets_broken: int = field(name="NumPDBViolations", default=0)


class PreemptionArgs(Struct, frozen=True):
    """Is it right that these go, so that a pod has room on one of these nodes?"""

    pod: SlotPod = field(name="Pod")
    victims: dict[str, Victims | None] | None = field(name="NodeNameToVictims", default=None)
    meta_victims: dict[str, MetaVictims | None] | None = field(
        name="NodeNameToMetaVictims", default=None
    )


class PreemptionResult(Struct, frozen=True):
    """These are to go."""

    meta_victims: Mapping[str, MetaVictims] = field(name="NodeNameToMetaVictims")


_FILTER = msgspec.json.Decoder(FilterArgs)
_PREEMPTION = msgspec.json.Decoder(PreemptionArgs)
_NODE = msgspec.json.Decoder(_NodeHead)


def read_filter(body: bytes) -> FilterArgs:
    """A question about nodes.

    Raises:
        BadRequestError: It is none.
    """
    return _read(_FILTER, body)


def read_preemption(body: bytes) -> PreemptionArgs:
    """A question about victims.

    Raises:
        BadRequestError: It is none.
    """
    return _read(_PREEMPTION, body)


def offered_nodes(args: FilterArgs) -> tuple[str, ...]:
    """The names of the nodes that are asked about.

    Raises:
        BadRequestError: A node has no name.
    """
    if args.node_names is not None:
        return tuple(args.node_names)
    return tuple(map(_name_of, args.nodes.items)) if args.nodes is not None else ()


def offered_victims(args: PreemptionArgs) -> dict[str, MetaVictims]:
    """By node who would go, in whichever form it was sent."""
    if args.meta_victims is not None:
        return {node: one or MetaVictims([]) for node, one in args.meta_victims.items()}
    return {node: _in_short(one) for node, one in (args.victims or {}).items()}


def unchanged(args: FilterArgs) -> FilterResult:
    """Every node, as for a pod that is none of our business."""
    return FilterResult(nodes=args.nodes, node_names=args.node_names)


def only(args: FilterArgs, slot: Slot) -> FilterResult:
    """The node of a pod's slot and no other; none where that one has no room for it so far."""
    names = offered_nodes(args)
    there = slot.node in names
    why = f"its slot is {slot}" if there else f"its slot is {slot}, where there is no room yet"
    return _kept(args, {name: why for name in names if name != slot.node})


def none_of(args: FilterArgs, why: str) -> FilterResult:
    """No node: the pod has no slot there, and evicting somebody would not give it one."""
    return _kept(args, dict.fromkeys(offered_nodes(args), why))


def evict(slot: Slot, ghost: SlotPod) -> PreemptionResult:
    """The ghost of a slot is to go."""
    return PreemptionResult({slot.node: MetaVictims([MetaPod(ghost.uid)])})


def as_offered(victims: Mapping[str, MetaVictims]) -> PreemptionResult:
    """Who would have gone, as for a pod that is none of our business."""
    return PreemptionResult(victims)


#: Nobody is to go.
NOBODY = PreemptionResult({})


def encode(result: FilterResult | PreemptionResult) -> bytes:
    """An answer as it is sent."""
    return msgspec.json.encode(result)


def _kept(args: FilterArgs, failed: Mapping[str, str]) -> FilterResult:
    if args.node_names is not None:
        kept = [name for name in args.node_names if name not in failed]
        return FilterResult(node_names=kept, unresolvable=failed)
    given = args.nodes or NodeList()
    items = [node for node in given.items if _name_of(node) not in failed]
    return FilterResult(nodes=NodeList(items, given.metadata), unresolvable=failed)


def _in_short(victims: Victims | None) -> MetaVictims:
    if victims is None:
        return MetaVictims([])
    pods: Sequence[_Victim] = victims.pods or ()
    return MetaVictims([MetaPod(one.metadata.uid) for one in pods], victims.budgets_broken)


def _name_of(node: msgspec.Raw) -> str:
    try:
        return _NODE.decode(node).metadata.name
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadRequestError(f"expected a node: {error}") from error


def _read(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        raise BadRequestError(f"expected what a scheduler asks an extender: {error}") from error
