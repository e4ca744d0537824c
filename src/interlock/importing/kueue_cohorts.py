"""Kueue's cohorts: who lends to whom, as far as Queues of a cohort do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from interlock.importing.drafts import LONGEST, Draft, quoted
from interlock.importing.fields import Fields, title_of
from interlock.importing.kueue_amounts import read_amount, sum_of
from interlock.resources.values.amounts import Amount

#: What our fields are called there.
PATHS = (
    (r"spec\.cohort", "spec.cohortName"),
    (r"spec\.(borrowing|lending)Limit", "spec.resourceGroups"),
    (r"spec\.fairSharing", "spec.fairSharing"),
    (r"spec\.preemption\.reclaimWithinCohort", "spec.preemption.reclaimWithinCohort"),
    (r"spec\.preemption\.borrowWithinCohort", "spec.preemption.borrowWithinCohort"),
)
#: The field that names the cohort: of v1beta2, and of v1beta1.
_NAMES = ("cohortName", "cohort")
_LIMITS = ("borrowingLimit", "lendingLimit")
_STRATEGIES = {"LessThanOrEqualToFinalShare", "LessThanInitialShare"}
_WEIGHTLESS = "Kueue takes no notice of it, since its Configuration has no fairSharing"


class Quota(NamedTuple):
    """What one flavor says of a resource."""

    nominal: Amount
    #: None is without a limit.
    borrowing: Amount | None
    lending: Amount | None


class Cohorts:
    """What a file says of cohorts beside its ClusterQueues."""

    def __init__(self, draft: Draft, queues: Iterable[Fields]) -> None:
        """Name those that some ClusterQueues are of."""
        found = {name for one in queues if (name := _name_in(one.data.get("spec")))}
        #: What each is called here.
        self._names = {name: draft.name_for("Cohort", name) for name in sorted(found)}
        #: Whether they share by weight; None where no Configuration says so.
        self.are_fair: bool | None = None

    def of(self, spec: Fields) -> str | None:
        """The cohort of a ClusterQueue, as it is called here."""
        for field in _NAMES:
            if old := spec.text(field):
                name = self._names[old]
                if not spec.draft.wishes.prefix and name != old:
                    longest = LONGEST["Cohort"]
                    why = f"a cohort's name has at most {longest} characters, and no dots"
                    told = f"{quoted(old)} is another one"
                    spec.note(field, told, why, f"it is called {name}")
                return name
        return None

    def tell(self, draft: Draft, given: Fields) -> None:
        """Tell what of a Cohort is lost: it is a name that Queues have in common."""
        spec, metadata = given.within("spec"), given.within("metadata")
        name = metadata.text("name") or ""
        metadata.require("name", name)
        for field in ("parentName", "parent"):
            if parent := spec.text(field):
                told, why = f"{quoted(parent)} is not carried over", "cohorts are not nested"
                spec.note(field, told, why, "its Queues lend to each other alone")
        if spec.items("resourceGroups"):
            why = "a cohort has what its Queues lend, and no quota of its own"
            instead = "it is left out; a Queue of the cohort that no Job names would lend it"
            spec.note("resourceGroups", "is not carried over", why, instead)
        if spec.raw("fairSharing"):
            why = "cohorts are not nested, and share with nobody"
            spec.note("fairSharing", "is not carried over", why, "it is left out")
        spec.tell_rest()
        if name not in self._names:
            draft.leave_out(
                given.line_of(), title_of(given), "no ClusterQueue of the file is of it"
            )
            return
        why, instead = "Queues name their cohort", f"cohort: {self._names[name]} in each of them"
        draft.note(given.line_of(), title_of(given), "is no object", why, instead)

    def lending(
        self, spec: Fields, cohort: str | None, quotas: Mapping[str, Sequence[Quota]]
    ) -> dict[str, Any]:
        """What a Queue of a cohort, or of none, says of lending and borrowing."""
        sharing = self._sharing(spec, cohort)
        if cohort is None:
            return {}
        made: dict[str, Any] = {"cohort": cohort}
        if borrowing := _borrowing(spec, quotas):
            made["borrowingLimit"] = borrowing
        lending = {
            name: sum_of([one.nominal if one.lending is None else one.lending for one in found])
            for name, found in quotas.items()
            if any(one.lending is not None for one in found)
        }
        if lending:
            made["lendingLimit"] = lending
        return made | sharing

    def _sharing(self, spec: Fields, cohort: str | None) -> dict[str, Any]:
        given = spec.within("fairSharing")
        weight = None
        if given.raw("weight") is not None:
            weight = read_amount(given, "weight")
        given.tell_rest()
        if weight is None:
            return {"fairSharing": {"weight": 1}} if self.are_fair else {}
        told = f"{weight} is not carried over"
        is_usual = weight.milli == 1000
        if cohort is None or self.are_fair is False:
            if cohort is None and not is_usual:
                why = "its ClusterQueue is of no cohort"
                given.note("weight", told, why, "it has its own quota alone")
            elif not is_usual:
                given.note("weight", told, _WEIGHTLESS, "what is lent goes by priority")
            return {}
        if self.are_fair is None:
            why = "whether weights count is said in Kueue's Configuration, which is not in the file"
            given.note("weight", "is taken to count", why, "what is lent is shared by weight")
        return {"fairSharing": {"weight": weight.written}}


def quota_of(one: Fields, *, has_cohort: bool) -> Quota:
    """What a flavor says of a resource."""
    one.require("nominalQuota", one.data.get("nominalQuota") is not None)
    nominal = read_amount(one, "nominalQuota")
    limits = [None if one.raw(name) is None else read_amount(one, name) for name in _LIMITS]
    for name, limit in zip(_LIMITS, limits, strict=True):
        if limit is not None and not has_cohort:
            told = f"{limit} is not carried over"
            one.note(name, told, "its ClusterQueue is of no cohort", "it has its own quota alone")
    if limits[1] is not None and limits[1].milli > nominal.milli:
        why = f"expected no more than its nominalQuota, {nominal}, found {limits[1]}"
        raise one.wrong("lendingLimit", why)
    return Quota(nominal, *limits)


def preemption_of(given: Fields) -> dict[str, Any]:
    """Who makes room for the Jobs of a Queue."""
    made: dict[str, Any] = {}
    within = given.one_of(
        "withinClusterQueue", "Never", "LowerPriority", "LowerOrNewerEqualPriority"
    )
    if within not in (None, "Never"):
        made["withinQueue"] = within
    reclaim = given.one_of("reclaimWithinCohort", "Never", "LowerPriority", "Any")
    if reclaim not in (None, "Never"):
        made["reclaimWithinCohort"] = reclaim
    borrow = given.within("borrowWithinCohort")
    policy = borrow.one_of("policy", "Never", "LowerPriority")
    threshold = borrow.whole("maxPriorityThreshold")
    if policy not in (None, "Never"):
        most = {} if threshold is None else {"maxPriorityThreshold": threshold}
        made["borrowWithinCohort"] = {"policy": policy, **most}
    borrow.tell_rest()
    given.tell_rest()
    return made


def are_fair(given: Fields, *, is_first: bool) -> bool:
    """Whether a Configuration has cohorts share by weight."""
    name = "fairSharing"
    if given.raw(name) is None:
        return False
    sharing = given.within(name)
    if not is_first and sharing.data.get("enable") is not None:
        raise sharing.wrong("enable", "v1beta2 has no such field: it shares wherever it is read")
    is_on = sharing.flag("enable") if is_first else True
    strategies = set(sharing.texts("preemptionStrategies"))
    if is_on and strategies and strategies != _STRATEGIES:
        why = "a Queue gets room from one with a larger part, by either of Kueue's strategies"
        sharing.note("preemptionStrategies", "is not carried over", why, "both of them")
    sharing.tell_rest()
    return is_on


def _borrowing(spec: Fields, quotas: Mapping[str, Sequence[Quota]]) -> dict[str, Any]:
    """How much a Queue may borrow of each resource: of one flavor without end is of all."""
    made = {}
    for name, found in quotas.items():
        limits = [one.borrowing for one in found if one.borrowing is not None]
        if limits and len(limits) < len(found):
            why = f"in Kueue it may borrow any {name} of another flavor, and flavors are one quota"
            told = f"a borrowingLimit of {name} is not carried over"
            spec.note("resourceGroups", told, why, "no such limit")
        elif limits:
            made[name] = sum_of(limits)
    return made


def _name_in(spec: object) -> str:
    """The name of a cohort in a ClusterQueue that may make no sense at all."""
    found = (spec.get(name) for name in _NAMES) if isinstance(spec, dict) else ()
    return next((name for name in found if isinstance(name, str) and name), "")
