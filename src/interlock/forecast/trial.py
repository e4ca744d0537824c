"""A trial run: what a change would do at once, by the real decisions on a copy of the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from interlock.forecast.rehearsal.lines import Line
from interlock.forecast.rehearsal.scenario import FOREVER, WorkRule
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.forecast.rehearsal.world import World
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.modes import Mode

#: What the control plane does within this time, it does at once.
AT_ONCE = timedelta(seconds=2)
#: A Job that runs now goes on as long as this takes.
_GOES_ON = (WorkRule(lasts=FOREVER),)
_WORDS = {
    "Created": "made",
    "Started": "started",
    "Stopping": "stopped",
    "Deleted": "deleted",
    "Held": "held back",
    "Suspended": "suspended",
    "Resumed": "resumed",
}


class AtOnce(Struct, frozen=True, kw_only=True):
    """What would become of one Job at once."""

    job: str
    namespace: str
    #: The kind and name of what it was made for; its own when it stands for itself.
    owner: tuple[str, str]
    #: made, started, stopped, deleted, held back, refused, ...
    action: str
    reason: str


def at_once(
    stored: Sequence[Resource],
    changed: Sequence[Resource],
    now: datetime,
    mode: Mode,
    *,
    most_steps: int | None = None,
) -> list[AtOnce]:
    """What a change would do at once that does not happen without it.

    Raises:
        SpinningError: More steps are needed than there may be.
    """
    owners: dict[Key, tuple[str, str]] = {}

    def happens(some: Sequence[Resource]) -> list[Line]:
        world = World(now, work=_GOES_ON, mode=mode, most_steps=most_steps)
        try:
            return _happens(world, stored, some, owners)
        finally:
            world.close()

    without = {_what(line) for line in happens(())}
    found = happens(changed)
    return list(_told([line for line in found if _what(line) not in without], owners))


def _happens(
    world: World,
    stored: Sequence[Resource],
    changed: Sequence[Resource],
    owners: dict[Key, tuple[str, str]],
) -> list[Line]:
    """The lines about Jobs; notes whose Jobs they are."""
    now = world.now()
    world.store.go_on_from(max((one.version for one in stored), default=0))
    world.put(stored)
    world.begin()
    world.play_until(now)
    before = len(world.lines) if changed else 0
    for resource in changed:
        _change(world, resource)
    world.play_until(now + AT_ONCE)
    for job in (*stored, *world.all_of("Job", "")):
        if isinstance(job, Job):
            owners[job.key] = _owner_of(job)
    return [line for line in world.lines[before:] if line.kind == "Job"]


def _change(world: World, resource: Resource) -> None:
    held = world.get(resource.key)
    if held is None:
        metadata = replace(resource.metadata, uid="", resource_version="", creation_timestamp=None)
        world.put([replace(resource, metadata=metadata)])
        return
    metadata = replace(
        resource.metadata, uid=held.metadata.uid, resource_version=held.metadata.resource_version
    )
    run_now(world.store.update(replace(resource, metadata=metadata)))


def _owner_of(job: Job) -> tuple[str, str]:
    for owner in job.metadata.owner_references:
        if owner.controller:
            return owner.kind, owner.name
    return "Job", job.metadata.name


def _what(line: Line) -> tuple[str, str, str]:
    return line.namespace, line.name, line.event


def _told(lines: Iterable[Line], owners: dict[Key, tuple[str, str]]) -> Iterable[AtOnce]:
    """One entry for each Job: what happens to it last."""
    last: dict[tuple[str, str], AtOnce] = {}
    for line in lines:
        word = _WORDS.get(line.event)
        if line.event == "Finished" and line.reason in ("Refused", "Killed"):
            word = "refused" if line.reason == "Refused" else "stopped"
        if word is None:
            continue
        key = (line.namespace, line.name)
        reason = line.detail or line.reason
        was = last.get(key)
        if was is not None and was.action == "stopped" and word in ("stopped", "deleted"):
            reason = was.reason or reason
        last[key] = AtOnce(
            job=line.name,
            namespace=line.namespace,
            owner=owners.get(Key("Job", *key), ("Job", line.name)),
            action=word,
            reason=reason,
        )
    return last.values()
