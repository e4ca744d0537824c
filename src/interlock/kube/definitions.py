"""The custom resource definitions of our kinds, made from their types."""

from __future__ import annotations

from interlock.kube.installation import Manifest, labelled
from interlock.kube.schemas import schema_of
from interlock.resources.columns import Column, columns_of
from interlock.resources.kinds import KINDS, Kind
from interlock.resources.metadata import GROUP

#: Where a column's value is. A definition can point at a value but not compute one, so columns
#: that are computed elsewhere show the nearest value here, and say which.
_PATHS: dict[str, dict[str, tuple[str, str]]] = {
    "Job": {
        "Phase": (".status.phase", ""),
        "Tasks": (".status.execution.succeeded", "Numbers of the tasks that succeeded."),
        "Waits for": (".status.admission.waits[0].reason", "The first thing it waits for."),
        "Locks": (".spec.locks[0].key", "The first lock the Job needs."),
        "Started": (".status.execution.startedAt", ""),
        "Ended": (".status.execution.endedAt", ""),
        "Exit": (
            ".status.execution.ended[-1:].exitCode",
            "Exit code of the newest attempt that is over.",
        ),
        "By": (r".metadata.annotations.interlock\.dev/creator", ""),
        "Message": (".status.execution.message", ""),
        "Title": (".spec.title", ""),
    },
    "JobConfig": {
        "State": (".status.state", ""),
        "Active": (".status.active", ""),
        "Queued": (".status.queued", ""),
        "Last schedule": (".status.lastScheduled", ""),
        "Next schedule": (".status.nextSchedule", ""),
        "Cron": (".spec.schedules[0].cron", "When its first schedule is due."),
        "Timezone": (".spec.schedules[0].timezone", "Whose clock tells its first schedule."),
        "Last success": (".status.lastSuccess", ""),
        "Last failure": (".status.lastFailure", ""),
        "Skipped": (".status.skipped", ""),
    },
    "ControlledJob": {
        "Running": (".status.isRunning", ""),
        "Should be running": (".status.shouldBeRunning", ""),
        "Suspended": (".status.isSuspended", ""),
        "Next start": (".status.nextStart", ""),
        "Next stop": (".status.nextStop", ""),
        "Last scheduled start": (".status.lastScheduledStartTime", ""),
        "Timezone": (".spec.timezone.name", ""),
        "Overrides": (".spec.overrides[0].action", "The first exception to the plan."),
        "Job": (".status.active[0].name", "The Job that runs."),
    },
    "Calendar": {"Days": (".spec.days[0].day", "The first of its days.")},
    "Lock": {
        "Key": (".spec.key", ""),
        "Holders": (".status.holders[0].job", "The first Job that holds the lock."),
        "Limit": (".status.limit", ""),
        "Token": (".status.lastToken", ""),
    },
}
#: Fields by which an API server can select, beside the name.
_SELECTABLE = {
    "Job": (".status.phase", ".status.admission.phase", ".spec.suspend"),
    "JobConfig": (".status.state", ".spec.suspend"),
    "ControlledJob": (".status.isRunning", ".status.shouldBeRunning", ".spec.suspend"),
    "Lock": (".spec.key",),
}


def definitions() -> list[Manifest]:
    """One definition for each kind of ours."""
    return [definition(kind) for kind in KINDS.values() if kind.group == GROUP]


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
    selectable = [{"jsonPath": path} for path in _SELECTABLE.get(kind.name, ())]
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}} if kind.has_status else {},
        "additionalPrinterColumns": [
            _column(kind.name, column)
            for column in columns_of(kind.name)
            if column.name != "Name"  # every list has it
        ],
        **({"selectableFields": selectable} if selectable else {}),
        "schema": {"openAPIV3Schema": schema_of(kind.name)},
    }


def _column(kind: str, column: Column) -> Manifest:
    shown: Manifest = {"name": column.name, "type": column.type}
    if column.name == "Age":
        return {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    path, description = _PATHS[kind][column.name]
    shown["description"] = description or column.description
    shown["jsonPath"] = path
    return shown | ({"priority": column.priority} if column.priority else {})
