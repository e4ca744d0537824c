"""An API server in memory: pods, batch Jobs and nodes, and the rules that it keeps for them.

Only the rules that something here rests on are kept, but those exactly: names are taken until
their object is gone, a uid never comes back, what is going is not bound, and what is held stays.
Bodies are never changed in place, so whoever holds one may keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from interlock.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    Problem,
)
from interlock.resources.metadata import Key

#: An object as JSON has it.
Body = dict[str, Any]
Place = tuple[str, str]

KINDS = ("Pod", "Job", "Node")
#: So many events are kept for those who watch; who is farther behind lists again.
KEPT_EVENTS = 300
OVER = ("Succeeded", "Failed")
_DEFAULT_GRACE_S = 30


class Happened(NamedTuple):
    """A committed change of one object."""

    version: int
    type: str
    kind: str
    #: As it was before, and as it is now or last was.
    before: Body | None
    body: Body


class SimApi:
    """Objects at rest. What it is asked is done at once; wires and luck are others' business."""

    def __init__(self, now: Callable[[], datetime], random: Random) -> None:
        self._now = now
        self._random = random
        self.version = 0
        self._held: dict[str, dict[Place, Body]] = {kind: {} for kind in KINDS}
        self._events: dict[str, list[Happened]] = {kind: [] for kind in KINDS}
        self._forgotten: dict[str, int] = dict.fromkeys(KINDS, 0)
        #: Told of each change when it is committed.
        self.listeners: dict[object, Callable[[Happened], None]] = {}
        #: Whose request is being carried out; empty for the cluster's own parts.
        self.caller = ""

    # Reading

    def all(self, kind: str) -> list[Body]:
        """Every object of a kind."""
        return list(self._held[kind].values())

    def find(self, kind: str, uid: str) -> Body | None:
        """The object with a uid, if it is there."""
        return next((b for b in self._held[kind].values() if b["metadata"]["uid"] == uid), None)

    def get(self, kind: str, place: Place) -> Body:
        """The newest version of an object."""
        found = self._held[kind].get(place)
        if found is None:
            raise NotFoundError(Key(kind, *place))
        return found

    def since(self, kind: str, version: int) -> list[Happened]:
        """What happened after a version."""
        if version < self._forgotten[kind]:
            raise ExpiredError(version, self._forgotten[kind])
        return [event for event in self._events[kind] if event.version > version]

    def forget_events(self) -> None:
        """Compact: whoever is behind has to list again."""
        for kind in KINDS:
            self._events[kind].clear()
            self._forgotten[kind] = self.version

    # Writing, as anybody may

    def create(self, kind: str, namespace: str, manifest: Mapping[str, Any]) -> Body:
        """Store a new object."""
        given = manifest["metadata"]
        place = (namespace, given["name"])
        if place in self._held[kind]:
            raise AlreadyExistsError(Key(kind, *place))
        spec = dict(manifest.get("spec") or {})
        if kind == "Pod":
            _check_pod(place, spec)
        metadata = {
            **given,
            "namespace": namespace,
            "uid": f"{self._random.getrandbits(64):016x}",
            "creationTimestamp": self.moment(),
        }
        status = {"phase": "Pending"} if kind == "Pod" else {}
        body = {**manifest, "metadata": metadata, "spec": spec, "status": status}
        return self._commit(kind, None, body)

    def patch(self, kind: str, place: Place, patch: Mapping[str, Any]) -> Body:
        """Merge a patch; a uid or version in it must be the object's."""
        before = self.get(kind, place)
        if "status" in patch:
            raise BadRequestError("a status is written elsewhere")
        self._expect(kind, place, before, patch.get("metadata", {}))
        named = {"uid", "resourceVersion"}
        metadata = {k: v for k, v in patch.get("metadata", {}).items() if k not in named}
        merged = merge(before, {**patch, "metadata": metadata})
        if merged == before:
            return before
        if kind == "Pod":
            _check_change(place, before, merged)
        _check_finalizers(kind, place, before, merged)
        return self._settle(kind, before, merged)

    def delete(self, kind: str, place: Place, *, uid: str = "", grace_s: int | None = None) -> Body:
        """Ask for an object to go, or for less time until it goes; returns what is left of it."""
        before = self.get(kind, place)
        if uid:
            self._expect(kind, place, before, {"uid": uid})
        grace = self._grace(kind, before, grace_s)
        metadata = before["metadata"]
        if "deletionTimestamp" in metadata:
            left = metadata.get("deletionGracePeriodSeconds") or 0
            if grace >= left and not (grace == left == 0):
                return before  # A second order may only shorten.
            if grace == left:
                return self._settle(kind, before, before)
        marks = {
            "deletionTimestamp": self.moment(timedelta(seconds=grace)),
            "deletionGracePeriodSeconds": grace,
        }
        return self._settle(kind, before, {**before, "metadata": {**metadata, **marks}})

    # Writing, as only the cluster's own parts may

    def bind(self, place: Place, uid: str, node: str) -> bool:
        """Place a pod on a node, as the scheduler does; False when that is refused."""
        before = self._held["Pod"].get(place)
        if before is None or before["metadata"]["uid"] != uid or is_going(before):
            return False
        if gates_of(before) or node_of(before) or is_over(before):
            return False
        spec = {**before["spec"], "nodeName": node}
        placed = {"type": "PodScheduled", "status": "True"}
        status = {**before["status"], "conditions": [placed]}
        self._commit("Pod", before, {**before, "spec": spec, "status": status})
        return True

    def set_status(self, kind: str, place: Place, uid: str, **changes: Any) -> bool:
        """Write parts of a status; False when the object is not there any more."""
        before = self._held[kind].get(place)
        if before is None or before["metadata"]["uid"] != uid:
            return False
        status = {**before["status"], **changes}
        if status != before["status"]:
            self._commit(kind, before, {**before, "status": status})
        return True

    def moment(self, later: timedelta = timedelta()) -> str:
        """Now, or later, as the server writes it: in whole seconds."""
        return f"{self._now() + later:%Y-%m-%dT%H:%M:%SZ}"

    # Rules

    def _grace(self, kind: str, body: Body, asked_s: int | None) -> int:
        if kind != "Pod" or not node_of(body) or is_over(body):
            return 0
        if asked_s is None:
            asked_s = body["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S)
        return max(asked_s, 0)

    def _expect(self, kind: str, place: Place, body: Body, named: Mapping[str, Any]) -> None:
        for field in ("uid", "resourceVersion"):
            found = body["metadata"][field]
            if field in named and named[field] != found:
                raise ConflictError(Key(kind, *place), expected=str(named[field]), found=found)

    def _settle(self, kind: str, before: Body, after: Body) -> Body:
        """Store a change, or remove the object if nothing holds it back any more."""
        metadata = after["metadata"]
        waits = metadata.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in metadata and not waits and not metadata.get("finalizers"):
            return self._remove(kind, after)
        return before if after is before else self._commit(kind, before, after)

    def _remove(self, kind: str, last: Body) -> Body:
        place = place_of(last)
        before = self._held[kind].pop(place)
        return self._note(kind, "DELETED", before, last)

    def _commit(self, kind: str, before: Body | None, after: Body) -> Body:
        return self._note(kind, "MODIFIED" if before is not None else "ADDED", before, after)

    def _note(self, kind: str, type: str, before: Body | None, after: Body) -> Body:
        self.version += 1
        body = {
            **after,
            "metadata": {**after["metadata"], "resourceVersion": str(self.version)},
        }
        if type != "DELETED":
            self._held[kind][place_of(body)] = body
        happened = Happened(self.version, type, kind, before, body)
        events = self._events[kind]
        events.append(happened)
        if len(events) > KEPT_EVENTS:
            self._forgotten[kind] = events.pop(0).version
        for listener in tuple(self.listeners.values()):
            listener(happened)
        return body


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch: null removes, objects are merged, all else is replaced."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def place_of(body: Body) -> Place:
    """Its namespace and name."""
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def uid_of(body: Body) -> str:
    """Its uid."""
    uid: str = body["metadata"]["uid"]
    return uid


def is_going(body: Body) -> bool:
    """Whether it was asked to go."""
    return "deletionTimestamp" in body["metadata"]


def is_over(pod: Body) -> bool:
    """Whether the phase of a pod is final."""
    return pod["status"].get("phase") in OVER


def gates_of(pod: Body) -> list[Body]:
    """What holds a pod back from the scheduler."""
    return pod["spec"].get("schedulingGates") or []


def node_of(pod: Body) -> str:
    """Where a pod was placed; empty when it was not."""
    return pod["spec"].get("nodeName") or ""


def chosen(body: Body, selector: str) -> bool:
    """Whether a label selector of the forms `name` and `name=value` chooses an object."""
    labels = body["metadata"].get("labels") or {}
    return all(_holds(labels, part) for part in _parts(selector))


def _parts(selector: str) -> Iterator[str]:
    return (part.strip() for part in selector.split(",") if part.strip())


def _holds(labels: Mapping[str, str], part: str) -> bool:
    name, equals, value = part.partition("=")
    return name in labels and (not equals or labels[name] == value.lstrip("="))


def command_of(pod: Body) -> tuple[str, ...]:
    """What its first container runs."""
    return tuple(pod["spec"]["containers"][0].get("command") or ())


def _check_pod(place: Place, spec: Body) -> None:
    containers = spec.get("containers")
    if not containers or "broken" in (containers[0].get("command") or ()):
        raise InvalidError("Pod", place[1], [Problem("spec.containers", "cannot be run")])


def _check_change(place: Place, before: Body, after: Body) -> None:
    """Of a pod's spec nothing changes but its gates, which only go."""
    gates = [gate["name"] for gate in gates_of(before)]
    kept = [gate["name"] for gate in gates_of(after)]
    fixed = {k: v for k, v in before["spec"].items() if k != "schedulingGates"}
    if fixed != {k: v for k, v in after["spec"].items() if k != "schedulingGates"}:
        raise InvalidError("Pod", place[1], [Problem("spec", "may not be changed")])
    if not set(kept) <= set(gates):
        told = "only deletion is allowed"
        raise InvalidError("Pod", place[1], [Problem("spec.schedulingGates", told)])


def _check_finalizers(kind: str, place: Place, before: Body, after: Body) -> None:
    held = set(before["metadata"].get("finalizers") or ())
    added = set(after["metadata"].get("finalizers") or ()) - held
    if added and is_going(before):
        told = "no new finalizers can be added if the object is being deleted"
        raise InvalidError(kind, place[1], [Problem("metadata.finalizers", told)])
