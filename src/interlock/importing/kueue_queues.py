"""Kueue's ClusterQueues, as Queues: one quota for each resource, whatever flavors it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.importing.drafts import Draft, quoted
from interlock.importing.fields import Fields
from interlock.importing.kueue_amounts import sum_of
from interlock.importing.kueue_cohorts import PATHS as COHORT_PATHS
from interlock.importing.kueue_cohorts import Cohorts, Quota, preemption_of, quota_of
from interlock.resources.queue import TASKS

#: What our fields are called there.
PATHS = (
    (r"spec\.resources", "spec.resourceGroups"),
    (r"spec\.order", "spec.queueingStrategy"),
    (r"spec\.stop", "spec.stopPolicy"),
    (r"spec\.preemption\.withinQueue", "spec.preemption.withinClusterQueue"),
    (r"spec\.namespaceSelector", "spec.namespaceSelector"),
    (r"spec\.waitForPodsReady", "waitForPodsReady of the Configuration"),
    *COHORT_PATHS,
)
STOPS = ("None", "Hold", "HoldAndDrain")
#: What every namespace is called in its labels.
_NAME_LABEL = "kubernetes.io/metadata.name"
#: What Kueue counts pods with.
_PODS = "pods"
#: What is written although it is the default, by the API server.
_USUAL_FUNGIBILITY = {
    "whenCanBorrow": ("Borrow", "MayStopSearch"),
    "whenCanPreempt": ("TryNextFlavor",),
    "preference": ("BorrowingOverPreemption",),
}


def queue_spec(given: Fields, spaces: Sequence[str], cohorts: Cohorts) -> dict[str, Any]:
    """What a Queue says, of a ClusterQueue; `spaces` are the namespaces of its LocalQueues."""
    spec = given.within("spec")
    cohort = cohorts.of(spec)
    quotas = _quotas(spec, has_cohort=cohort is not None)
    made: dict[str, Any] = {"resources": {name: _nominal(found) for name, found in quotas.items()}}
    made |= cohorts.lending(spec, cohort, quotas)
    if order := spec.one_of("queueingStrategy", "StrictFIFO", "BestEffortFIFO"):
        made["order"] = order
    if (stop := spec.one_of("stopPolicy", *STOPS)) not in (None, "None"):
        made["stop"] = stop
    if preemption := preemption_of(spec.within("preemption")):
        made["preemption"] = preemption
    if (selector := _namespaces(spec, spaces)) is not None:
        made["namespaceSelector"] = selector
    _tell_fungibility(spec.within("flavorFungibility"))
    for name in ("admissionChecks", "admissionChecksStrategy"):
        if spec.raw(name):
            why = "a Queue asks nobody else before it lets a Job in"
            spec.note(name, "is not carried over", why, "room in the quota is enough")
    if spec.raw("admissionScope"):
        why = "the order of a Queue is one of priority and of creation"
        spec.note("admissionScope", "is not carried over", why, "that order")
    spec.tell_rest()
    return made


def tell_flavor(draft: Draft, given: Fields) -> None:
    """Tell what of a ResourceFlavor is lost: it is a part of a sum."""
    del draft
    spec = given.within("spec")
    for name, why, instead in (
        ("nodeLabels", "a Queue puts no Job on particular nodes", "nodeSelector of the pods"),
        ("nodeTaints", "a Queue does not ask what pods tolerate", "any Job may take the quota"),
        ("tolerations", "a Queue gives pods nothing", "tolerations of the pods"),
        ("topologyName", "a Queue knows no nodes", "the cluster's scheduler places the pods"),
    ):
        if spec.raw(name):
            spec.note(name, "is not carried over", why, instead)
    spec.tell_rest()


def _quotas(spec: Fields, *, has_cohort: bool) -> dict[str, list[Quota]]:
    """What each flavor says of each resource, under our names."""
    quotas: dict[str, list[Quota]] = {}
    seen: set[str] = set()
    for group in spec.each("resourceGroups"):
        covered = group.texts("coveredResources")
        group.require("coveredResources", covered)
        if again := seen.intersection(covered):
            raise group.wrong("coveredResources", f"{quoted(min(again))} is in two groups")
        seen.update(covered)
        flavors = list(group.each("flavors"))
        group.require("flavors", flavors)
        for flavor in flavors:
            for name, quota in _flavor(flavor, covered, has_cohort=has_cohort).items():
                quotas.setdefault(name, []).append(quota)
        if len(flavors) > 1:
            told = ", ".join(f"{name} {_nominal(quotas[name])}" for name in covered)
            why = "in Kueue the pods of a Job have to fit into one flavor, and here into the sum"
            group.note("flavors", f"{len(flavors)} flavors are one quota", why, told)
        group.tell_rest()
    spec.require("resourceGroups", quotas)
    if _PODS in quotas:
        why = "tasks are what a Queue counts, and a batch Job is one task with all its pods"
        spec.note("resourceGroups", f"{quoted(_PODS)} is not carried over", why, TASKS)
    return {(TASKS if name == _PODS else name): found for name, found in quotas.items()}


def _nominal(quotas: Sequence[Quota]) -> int | str:
    return sum_of([one.nominal for one in quotas])


def _flavor(flavor: Fields, covered: Sequence[str], *, has_cohort: bool) -> dict[str, Quota]:
    """What a flavor says of each resource."""
    flavor.require("name", flavor.text("name"))
    found: dict[str, Quota] = {}
    for one in flavor.each("resources"):
        name = one.text("name") or ""
        one.require("name", name)
        if name in found or name not in covered:
            words = "twice" if name in found else "and not covered by the group"
            raise one.wrong("name", f"{quoted(name)} is given {words}")
        found[name] = quota_of(one, has_cohort=has_cohort)
        one.tell_rest()
    if lacking := [name for name in covered if name not in found]:
        raise flavor.wrong("resources", f"{quoted(lacking[0])} is covered by the group and missing")
    flavor.tell_rest()
    return found


def _tell_fungibility(given: Fields) -> None:
    for name, usual in _USUAL_FUNGIBILITY.items():
        found = given.text(name)
        if found and found not in usual:
            told = f"{quoted(found)} is not carried over"
            given.note(name, told, "a Queue has no flavors", "one quota for all")
    given.tell_rest()


def _namespaces(spec: Fields, spaces: Sequence[str]) -> dict[str, Any] | None:
    """Which namespaces may use a Queue; None for every namespace.

    By their names where it says nothing else, and else in the words of the source.
    """
    name = "namespaceSelector"
    if spec.data.get(name) is None:
        spec.note(name, "is not given", "to Kueue that is no namespace at all", "matchNames: []")
        return {"matchNames": []}
    chosen = _Chosen(spec.within(name))
    if not chosen.is_everybody and not chosen.asks_labels:
        return {"matchNames": chosen.names or []}
    if spaces:
        told = "lets every namespace in" if chosen.is_everybody else "goes by labels alone"
        why = "to Kueue only those with a LocalQueue can use it"
        names = f"matchNames: [{', '.join(spaces)}]"
        instead = f"all that it means; {names} keeps to those of the file"
        spec.note(name, told, why, instead)
    return None if chosen.is_everybody else chosen.selector


class _Chosen:
    """What a selector says about namespaces: their names, or more than that."""

    def __init__(self, given: Fields) -> None:
        #: The names there may be; None for any.
        self._in: list[str] | None = None
        self._not_in: set[str] = set()
        self._has_other_labels = False
        #: The same, as ours says it.
        self.selector: dict[str, Any] = {}
        labels = given.within("matchLabels")
        for key in labels.data:
            value = labels.text(key) or ""
            self.selector.setdefault("matchLabels", {})[key] = value
            if key == _NAME_LABEL:
                self._keep([value])
            else:
                self._has_other_labels = True
        for one in given.each("matchExpressions"):
            self._take(one)
        given.tell_rest()

    @property
    def names(self) -> list[str] | None:
        """The names that it allows; None where it allows any, or all but some."""
        if self._in is None:
            return None
        return [name for name in dict.fromkeys(self._in) if name not in self._not_in]

    @property
    def asks_labels(self) -> bool:
        """Whether it says what no list of names says."""
        return self._has_other_labels or (self._in is None and bool(self._not_in))

    @property
    def is_everybody(self) -> bool:
        """Whether it says nothing."""
        return self._in is None and not self.asks_labels

    def _take(self, one: Fields) -> None:
        key = one.text("key") or ""
        one.require("key", key)
        operator = one.one_of("operator", "In", "NotIn", "Exists", "DoesNotExist")
        one.require("operator", operator)
        values = one.texts("values")
        one.tell_rest()
        if operator in ("In", "NotIn"):
            one.require("values", values)
        compared = {"values": list(dict.fromkeys(values))} if values else {}
        requirement = {"key": key, "operator": operator, **compared}
        self.selector.setdefault("matchExpressions", []).append(requirement)
        if key != _NAME_LABEL:
            self._has_other_labels = True
        elif operator == "In":
            self._keep(values)
        elif operator == "NotIn":
            self._not_in.update(values)
        elif operator == "DoesNotExist":
            # Every namespace has a name.
            self._keep([])

    def _keep(self, names: Sequence[str]) -> None:
        self._in = [name for name in names if self._in is None or name in self._in]
