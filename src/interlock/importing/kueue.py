"""Kueue's queues, as ours: each ClusterQueue is a Queue, and its batch Jobs wait in it.

All that belongs together has to be in one file: who may use a Queue is said by LocalQueues too,
and whether its Jobs have to be ready in time by Kueue's own Configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from interlock.importing.drafts import LONGEST, BadSourceError, Draft, Flaw, quoted
from interlock.importing.fields import (
    Fields,
    kind_of,
    no_such,
    objects_in,
    take_one,
    title_of,
)
from interlock.importing.kueue_cohorts import Cohorts, are_fair
from interlock.importing.kueue_jobs import API_VERSIONS as JOB_VERSIONS
from interlock.importing.kueue_jobs import Lines, LocalQueue, space_of, take_job
from interlock.importing.kueue_queues import PATHS, STOPS, queue_spec, tell_flavor
from interlock.importing.kueue_ready import API_VERSIONS as CONFIGURATION_VERSIONS
from interlock.importing.kueue_ready import FIRST, configuration_in, ready_of
from interlock.importing.templates import SERVER_FIELDS, marks_of
from interlock.importing.unrendered import in_kind, in_object

API_VERSIONS = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
#: Which versions of each kind are read.
_KINDS = {
    "ClusterQueue": API_VERSIONS,
    "LocalQueue": API_VERSIONS,
    "ResourceFlavor": API_VERSIONS,
    "WorkloadPriorityClass": API_VERSIONS,
    "Cohort": (*API_VERSIONS, "kueue.x-k8s.io/v1alpha1"),
    "Configuration": CONFIGURATION_VERSIONS,
    "Job": JOB_VERSIONS,
}
_EXPECTED = f"ClusterQueue ({' or '.join(API_VERSIONS)})"


def import_kueue(draft: Draft, source: bytes) -> None:
    """Take every ClusterQueue of a file, with what else is said about it there.

    Raises:
        BadSourceError: The file has no ClusterQueue that makes sense.
    """
    given: dict[str, list[Fields]] = {kind: [] for kind in _KINDS}
    others: list[Fields] = []
    for found in objects_in(draft, source, *_KINDS):
        one = _unpacked(draft, found)
        kind = one.raw("kind")
        is_known = isinstance(kind, str) and one.raw("apiVersion") in _KINDS.get(kind, ())
        (given[kind] if is_known else others).append(one)
    if not given["ClusterQueue"] and not draft.has_flaws:
        rest = [one for objects in given.values() for one in objects]
        raise BadSourceError([no_such([*rest, *others], _EXPECTED, "ClusterQueue")])
    _Import(draft, Cohorts(draft, given["ClusterQueue"])).run(given)
    draft.settle()
    for one in others:
        draft.leave_out(one.line_of(), title_of(one), _why_left(one))


def _unpacked(draft: Draft, one: Fields) -> Fields:
    """The Configuration in a ConfigMap, or else the object itself."""
    try:
        return configuration_in(one) or one
    except BadSourceError as error:
        for flaw in error.flaws:
            draft.flaw(Flaw(flaw.line, flaw.message, title_of(one)))
        return one


def _why_left(one: Fields) -> str:
    kind = one.raw("kind")
    if kind == "CronJob":
        return "it is a CronJob: `interlock import cronjob` takes it"
    return (
        in_kind(kind, "ClusterQueue") or f"it is {kind_of(one)}, and Interlock has nothing like it"
    )


class _Import:
    """What was found so far: what is said about Queues comes before them, and Jobs come last."""

    def __init__(self, draft: Draft, cohorts: Cohorts) -> None:
        self._draft = draft
        self._cohorts = cohorts
        self._local: dict[tuple[str, str], LocalQueue] = {}
        self._priorities: dict[str, int] = {}
        self._ready: dict[str, Any] | None = None
        self._queues: dict[str, str] = {}
        self._spaces: dict[str, list[str] | None] = {}

    def run(self, given: dict[str, list[Fields]]) -> None:
        """Take the objects of a file, by their kinds."""
        for one in given["ResourceFlavor"]:
            self._attempt(one, tell_flavor)
        for one in given["Cohort"]:
            self._attempt(one, self._cohorts.tell)
        for one in given["WorkloadPriorityClass"]:
            self._attempt(one, self._take_priority)
        for one in given["LocalQueue"]:
            self._attempt(one, self._take_local)
        self._take_configurations(given["Configuration"])
        for one in given["ClusterQueue"]:
            self._attempt(one, self._take_queue)
        self._tell_local()
        lines = Lines(self._local, self._queues, self._spaces, self._priorities)
        for one in given["Job"]:
            self._attempt(one, partial(take_job, lines=lines))
        self._tell_all(bool(given["Configuration"]))

    def _attempt(self, one: Fields, take: Callable[[Draft, Fields], None]) -> None:
        if in_object(one.data, "ClusterQueue"):
            # It is no whole object: it is refused, and nothing is to be learned from it.
            take = _nothing
        self._draft.attempt(partial(take_one, self._draft, one, "ClusterQueue", take))

    def _take_priority(self, draft: Draft, given: Fields) -> None:
        del draft
        name, value = given.within("metadata").text("name"), given.whole("value")
        given.within("metadata").require("name", name)
        given.require("value", value is not None)
        given.pass_over("apiVersion", "kind", "metadata", "description", "status")
        given.tell_rest()
        given.note("value", f"{quoted(name or '')} is no object", _NUMBERS, f"priority: {value}")
        self._priorities[name or ""] = value or 0

    def _take_local(self, draft: Draft, given: Fields) -> None:
        del draft
        metadata, spec = given.within("metadata"), given.within("spec")
        name, queue = metadata.text("name"), spec.text("clusterQueue")
        metadata.require("name", name)
        spec.require("clusterQueue", queue)
        if (stop := spec.one_of("stopPolicy", *STOPS)) not in (None, "None"):
            why = "a Queue lets in all of its namespaces or nobody"
            instead = "its Jobs are let in; spec.stop of the Queue holds all, spec.suspend one"
            spec.note("stopPolicy", f"{quoted(stop or '')} is not carried over", why, instead)
        spec.tell_rest()
        local = LocalQueue(space_of(metadata), name or "", queue or "", given)
        self._local[local.namespace, local.name] = local

    def _take_configurations(self, given: list[Fields]) -> None:
        for one in given[:1]:
            self._attempt(one, self._take_configuration)
        for one in given[1:]:
            why = "there is one before it in the file"
            self._draft.leave_out(one.line_of(), title_of(one), why)

    def _take_configuration(self, draft: Draft, given: Fields) -> None:
        del draft
        self._cohorts.are_fair = are_fair(given, is_first=given.raw("apiVersion") == FIRST)
        self._ready = ready_of(given)

    def _take_queue(self, draft: Draft, given: Fields) -> None:
        given.require("spec", given.within("spec").data)
        metadata = given.within("metadata")
        old = metadata.text("name") or ""
        metadata.require("name", old)
        metadata.pass_over("name", *SERVER_FIELDS)
        marks = marks_of(metadata)
        metadata.tell_rest("it belongs to the object that is replaced")
        given.pass_over("apiVersion", "kind", "status")
        given.tell_rest()
        name = draft.name_for("Queue", old)
        if not draft.wishes.prefix and name != old:
            longest = LONGEST["Queue"]
            why = f"a Queue's name has at most {longest} characters, and no dots: {quoted(old)}"
            metadata.note("name", "is another one", why, f"it is called {name}")
        local = [one for one in self._local.values() if one.cluster_queue == old]
        spaces = list(dict.fromkeys(one.namespace for one in local))
        spec = queue_spec(given, spaces, self._cohorts)
        if self._ready is not None:
            spec["waitForPodsReady"] = self._ready
        made = len(draft.objects)
        draft.add(
            *(given.line_of(), title_of(given), "Queue", name),
            paths=PATHS,
            metadata=marks,
            spec=spec,
        )
        if len(draft.objects) > made:
            self._queues[old] = name
            selector = spec.get("namespaceSelector")
            self._spaces[name] = None if selector is None else selector.get("matchNames")

    def _tell_local(self) -> None:
        """Tell of each LocalQueue which Queue its Jobs have to name."""
        for one in self._local.values():
            title, queue = f"LocalQueue {one.name}", self._queues.get(one.cluster_queue)
            line = one.given.line_of()
            if queue is None:
                why = f"its ClusterQueue {quoted(one.cluster_queue)} is not imported"
                self._draft.leave_out(line, title, why)
                continue
            why = "Jobs name a Queue, and the Queue their namespaces"
            instead = f"queue: {queue} in the spec of its Jobs, in namespace {one.namespace}"
            self._draft.note(line, title, "is no object", why, instead)

    def _tell_all(self, is_configured: bool) -> None:
        """Tell what counts for the whole file."""
        if not self._queues:
            return
        tell = partial(self._draft.note, 0)
        if not is_configured:
            why = "whether Kueue waits is said in its Configuration, which the file does not have"
            instead = "no Queue does; put the Configuration into the file to have it carried over"
            tell("waitForPodsReady", "is not known", why, instead)
        why = "Kueue lets no Job in whose pods ask for what no flavor of its ClusterQueue has"
        instead = "the Queue takes no notice of what it does not name"
        tell("spec.resourceGroups", "other resources are not refused", why, instead)


def _nothing(draft: Draft, given: Fields) -> None:
    del draft, given


_NUMBERS = "Jobs give their priorities as numbers"
