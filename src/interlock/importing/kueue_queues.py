"""Kueue's ClusterQueues, as Queues: one quota for each resource, whatever flavors it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.importing.drafts import Draft, quoted
from interlock.importing.fields import Fields
from interlock.resources.queue import TASKS
from interlock.resources.values.amounts import EXPECTED, MOST, Amount, format_milli
from interlock.resources.values.quantities import parse_quantity

#: What our fields are called there.
PATHS = (
    (r"spec\.resources", "spec.resourceGroups"),
    (r"spec\.order", "spec.queueingStrategy"),
    (r"spec\.stop", "spec.stopPolicy"),
    (r"spec\.preemption\.withinQueue", "spec.preemption.withinClusterQueue"),
    (r"spec\.namespaceSelector\.matchNames", "spec.namespaceSelector"),
    (r"spec\.waitForPodsReady", "waitForPodsReady of the Configuration"),
)
STOPS = ("None", "Hold", "HoldAndDrain")
#: What every namespace is called in its labels.
_NAME_LABEL = "kubernetes.io/metadata.name"
_ALONE = "a Queue has its own quota alone: it neither borrows nor lends"
#: What Kueue counts pods with.
_PODS = "pods"
#: What is written although it is the default, by the API server.
_USUAL_FUNGIBILITY = {
    "whenCanBorrow": ("Borrow", "MayStopSearch"),
    "whenCanPreempt": ("TryNextFlavor",),
    "preference": ("BorrowingOverPreemption",),
}


def queue_spec(given: Fields, spaces: Sequence[str]) -> dict[str, Any]:
    """What a Queue says, of a ClusterQueue; `spaces` are the namespaces of its LocalQueues."""
    spec = given.within("spec")
    made: dict[str, Any] = {"resources": _resources(spec)}
    if order := spec.one_of("queueingStrategy", "StrictFIFO", "BestEffortFIFO"):
        made["order"] = order
    if (stop := spec.one_of("stopPolicy", *STOPS)) not in (None, "None"):
        made["stop"] = stop
    if within := _preemption(spec.within("preemption")):
        made["preemption"] = {"withinQueue": within}
    if (names := _names(spec, spaces)) is not None:
        made["namespaceSelector"] = {"matchNames": names}
    for name in ("cohort", "cohortName"):
        if cohort := spec.text(name):
            spec.note(name, f"{quoted(cohort)} is not carried over", _ALONE, "its nominal quota")
    _tell_fungibility(spec.within("flavorFungibility"))
    for name in ("admissionChecks", "admissionChecksStrategy"):
        if spec.raw(name):
            why = "a Queue asks nobody else before it lets a Job in"
            spec.note(name, "is not carried over", why, "room in the quota is enough")
    for name in ("fairSharing", "admissionScope"):
        if spec.raw(name):
            why = "the order of a Queue is one of priority and of creation"
            spec.note(name, "is not carried over", why, "that order")
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


def _resources(spec: Fields) -> dict[str, Any]:
    amounts: dict[str, list[Amount]] = {}
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
            for name, amount in _quotas(flavor, covered).items():
                amounts.setdefault(name, []).append(amount)
        if len(flavors) > 1:
            told = ", ".join(f"{name} {_sum(amounts[name])}" for name in covered)
            why = "in Kueue the pods of a Job have to fit into one flavor, and here into the sum"
            group.note("flavors", f"{len(flavors)} flavors are one quota", why, told)
        group.tell_rest()
    spec.require("resourceGroups", amounts)
    if _PODS in amounts:
        why = "tasks are what a Queue counts, and a batch Job is one task with all its pods"
        spec.note("resourceGroups", f"{quoted(_PODS)} is not carried over", why, TASKS)
    return {(TASKS if name == _PODS else name): _sum(found) for name, found in amounts.items()}


def _sum(amounts: Sequence[Amount]) -> int | str:
    if len(amounts) == 1:
        return amounts[0].written
    return format_milli(sum(amount.milli for amount in amounts))


def _quotas(flavor: Fields, covered: Sequence[str]) -> dict[str, Amount]:
    """The nominal quota of each resource in a flavor."""
    flavor.require("name", flavor.text("name"))
    found: dict[str, Amount] = {}
    for one in flavor.each("resources"):
        name = one.text("name") or ""
        one.require("name", name)
        if name in found or name not in covered:
            words = "twice" if name in found else "and not covered by the group"
            raise one.wrong("name", f"{quoted(name)} is given {words}")
        one.require("nominalQuota", one.data.get("nominalQuota") is not None)
        found[name] = _amount(one, "nominalQuota")
        for limit in ("borrowingLimit", "lendingLimit"):
            if one.data.get(limit) is not None:
                told = f"{_amount(one, limit)} is not carried over"
                one.note(limit, told, _ALONE, "its nominal quota")
        one.tell_rest()
    if lacking := [name for name in covered if name not in found]:
        raise flavor.wrong("resources", f"{quoted(lacking[0])} is covered by the group and missing")
    flavor.tell_rest()
    return found


def _amount(given: Fields, name: str) -> Amount:
    """An amount, as Kubernetes writes it."""
    value = given.raw(name)
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(EXPECTED)
        return _read_amount(value)
    except ValueError as error:
        raise given.wrong(name, f"{error}, found {quoted(str(value))}") from None


def _read_amount(value: float | str) -> Amount:
    try:
        return Amount.read(value if isinstance(value, int) else str(value))
    except ValueError:
        # Ours know no 1e3 and no .5.
        text = str(value)
        scale, number = (1, text[:-1]) if text.endswith("m") else (1000, text)
        try:
            milli = parse_quantity(number) * scale
        except ValueError:
            raise ValueError(EXPECTED) from None
        if milli > MOST * 1000:
            raise
        return Amount(milli)


def _preemption(given: Fields) -> str | None:
    within = given.one_of(
        "withinClusterQueue", "Never", "LowerPriority", "LowerOrNewerEqualPriority"
    )
    reclaim = given.one_of("reclaimWithinCohort", "Never", "LowerPriority", "Any")
    if reclaim not in (None, "Never"):
        told = f"{quoted(reclaim or '')} is not carried over"
        given.note("reclaimWithinCohort", told, _ALONE, "nobody else has its quota")
    borrow = given.within("borrowWithinCohort")
    policy = borrow.one_of("policy", "Never", "LowerPriority")
    borrow.pass_over("maxPriorityThreshold")
    if policy not in (None, "Never"):
        told = f"{quoted(policy or '')} is not carried over"
        given.note("borrowWithinCohort", told, _ALONE, "nobody of another Queue is put back")
    borrow.tell_rest()
    given.tell_rest()
    return None if within == "Never" else within


def _tell_fungibility(given: Fields) -> None:
    for name, usual in _USUAL_FUNGIBILITY.items():
        found = given.text(name)
        if found and found not in usual:
            told = f"{quoted(found)} is not carried over"
            given.note(name, told, "a Queue has no flavors", "one quota for all")
    given.tell_rest()


def _names(spec: Fields, spaces: Sequence[str]) -> list[str] | None:
    """The names of the namespaces that may use a Queue; None for every namespace."""
    name = "namespaceSelector"
    if spec.data.get(name) is None:
        spec.note(name, "is not given", "to Kueue that is no namespace at all", "matchNames: []")
        return []
    chosen = _Chosen(spec.within(name))
    if chosen.is_everybody:
        if spaces:
            why = "to Kueue only those with a LocalQueue can use it"
            instead = f"all of them; matchNames: [{', '.join(spaces)}] keeps to those of the file"
            spec.note(name, "lets every namespace in", why, instead)
        return None
    if not chosen.unsaid:
        return chosen.of(chosen.names or ())
    names = chosen.of(spaces if chosen.names is None else chosen.names)
    origin = "the namespaces of its LocalQueues" if chosen.names is None else "the names it gives"
    for given, part in chosen.unsaid:
        given.note(
            part,
            "is not carried over",
            "a Queue knows namespaces by their names alone",
            f"{origin}: matchNames: [{', '.join(names)}]",
        )
    return names


class _Chosen:
    """What a selector says about the names of namespaces, and where it says anything else."""

    def __init__(self, given: Fields) -> None:
        #: The names there may be; None for any.
        self.names: list[str] | None = None
        #: Where it says what only labels tell, and where it leaves names out.
        self._of_labels: list[tuple[Fields, str]] = []
        self._leaving_out: list[tuple[Fields, str]] = []
        self._others: set[str] = set()
        labels = given.within("matchLabels")
        for key in labels.data:
            value = labels.text(key)
            if key == _NAME_LABEL:
                self._keep([value or ""])
            else:
                self._of_labels.append((labels, key))
        for one in given.each("matchExpressions"):
            self._take(one)
        given.tell_rest()

    @property
    def unsaid(self) -> list[tuple[Fields, str]]:
        """Where it says what no list of names says."""
        return self._of_labels + (self._leaving_out if self.names is None else [])

    @property
    def is_everybody(self) -> bool:
        """Whether it says nothing."""
        return self.names is None and not self.unsaid

    def of(self, names: Sequence[str]) -> list[str]:
        """Those of some names that it does not leave out."""
        return [name for name in dict.fromkeys(names) if name not in self._others]

    def _take(self, one: Fields) -> None:
        key = one.text("key")
        one.require("key", key)
        operator = one.one_of("operator", "In", "NotIn", "Exists", "DoesNotExist")
        one.require("operator", operator)
        values = one.texts("values")
        one.tell_rest()
        if operator in ("In", "NotIn"):
            one.require("values", values)
        if key != _NAME_LABEL:
            self._of_labels.append((one, ""))
        elif operator == "In":
            self._keep(values)
        elif operator == "NotIn":
            self._others.update(values)
            self._leaving_out.append((one, ""))
        elif operator == "DoesNotExist":
            # Every namespace has a name.
            self._keep([])

    def _keep(self, names: Sequence[str]) -> None:
        self.names = [name for name in names if self.names is None or name in self.names]
