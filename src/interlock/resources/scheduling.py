"""A Scheduling: a plan that claims Jobs and places them on slots of a TestBed; and
SchedulingClaims, the record of which plan has which Jobs and which part of a bed.

A plan says in which order its Jobs get slots (`queueBased`), or which slots each of them gets
(`slotBased`). It begins once it has everything: all of its Jobs and its part of the bed. A plan can
be extended at its end while it goes on; all else about it stays.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from interlock.resources.job import MAX_SLOTS, TEST_BED_NAME, SlotId
from interlock.resources.metadata import Condition, Moment, Noun, Resource, Status
from interlock.resources.naming import MAX_JOB_NAME
from interlock.resources.rules import DnsLabel, ExactlyOne, Items, Limit, NounRule, Unique

#: How many entries a plan has at most: Jobs, or in a queue their occurrences.
MAX_ENTRIES = 1_000
#: How many slots the Jobs of a plan name at most, all together.
MAX_NAMED_SLOTS = 5_000
#: How many Jobs all plans of a namespace have at a time at most, as one record has to hold them.
MAX_CLAIMED = 3_000
MAX_POSITION = 1_000_000

#: Kept on a plan until its Jobs are put back, so that deleting it does that first.
PLAN_FINALIZER = "interlock.dev/claims"
#: On a Job: the uids of the plans that have put it back. None of them ever claims it again.
PUT_BACK_ANNOTATION = "interlock.dev/put-back-by"

_JobName = Annotated[str, DnsLabel(MAX_JOB_NAME)]
_Position = Annotated[int, Limit(0, MAX_POSITION)]
_SlotIds = Annotated[tuple[SlotId, ...], Items(1, MAX_SLOTS, "slots"), Unique()]
_Positions = Annotated[tuple[_Position, ...], Items(1, MAX_SLOTS, "positions"), Unique()]


class PlanMode(StrEnum):
    """Whether Jobs of a plan that names slots may overtake each other."""

    #: A Job waits until its own slots are free, and those of all Jobs before it.
    STRICT = "strict"
    #: A Job waits for its own slots only.
    RELAXED = "relaxed"


class WhenFailed(StrEnum):
    """What becomes of a plan once a Job of it has failed for good, all its retries used."""

    #: It goes on with the others.
    CONTINUE = "Continue"
    #: It has failed, and gives slots to no further Job; those that were told theirs go on.
    STOP = "Stop"


class SlottedJob(Noun):
    """A Job of a plan, and the slots that it gets: exactly one of slotIds and positions."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("slot_ids", "positions"),)

    name: _JobName
    #: These slots, each as NODE/NUMBER.
    slot_ids: _SlotIds | None = None
    #: The slots that have these positions in the bed when the plan claims it.
    positions: _Positions | None = None


class SlotBased(Noun):
    """Jobs that wait for certain slots."""

    jobs: Annotated[tuple[SlottedJob, ...], Items(1, MAX_ENTRIES, "Jobs"), Unique("name")]
    mode: PlanMode = PlanMode.STRICT


class SchedulingSpec(Noun):
    """Which Jobs get which slots, or in which order."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("queue_based", "slot_based"),)

    #: The TestBed, in the plan's namespace.
    test_bed: Annotated[str, TEST_BED_NAME]
    #: Names of Jobs: each gets as many slots as it has entries, all at once, in this order. Of the
    #: slots that are free the first goes to the first entry, and so on.
    queue_based: Annotated[tuple[_JobName, ...], Items(1, MAX_ENTRIES, "entries")] | None = None
    #: Jobs that wait for certain slots.
    slot_based: SlotBased | None = None
    #: The part of the bed that the plan keeps to, and has for itself among plans: these slots. With
    #: neither this nor `positions` that is the whole bed.
    slot_ids: _SlotIds | None = None
    #: The same by the positions that the slots have in the bed when the plan claims it.
    positions: _Positions | None = None
    #: What becomes of the plan once a Job of it has failed.
    when_failed: WhenFailed = WhenFailed.CONTINUE


class PlanState(StrEnum):
    """How far a plan is."""

    #: It does not have all of its Jobs, or its part of the bed.
    ACQUIRING = "Acquiring"
    #: A Job was told its slots, and does not have them yet.
    CONFIRMING = "Confirming"
    #: Jobs wait for slots that are taken.
    SUBMITTING = "Submitting"
    #: Every Job has its slots; not all are over.
    AWAITING_COMPLETION = "AwaitingCompletion"
    #: Every Job is over.
    COMPLETED = "Completed"
    #: A Job failed, and the plan is to stop then.
    FAILED = "Failed"


class PlannedState(StrEnum):
    """How far a Job of a plan is."""

    #: It is not the plan's yet.
    ACQUIRING = "Acquiring"
    #: It is the plan's, and has not been told its slots.
    IN_QUEUE = "InQueue"
    #: It was told its slots, and does not have them all yet.
    SUBMITTED = "Submitted"
    #: It has its slots, and is about to run in them.
    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    #: It did what it was asked to. Final.
    COMPLETED = "Completed"
    #: It is over without that. Final.
    FAILED = "Failed"


class PlanWaitReason(StrEnum):
    """Why a plan does not go on."""

    #: Its TestBed is not there.
    NO_TEST_BED = "NoSuchTestBed"
    #: The bed does not have a slot that it names.
    NO_SLOT = "NoSuchSlot"
    #: A Job is to get a slot outside of the plan's part of the bed.
    NOT_IN_PART = "SlotNotInPart"
    #: A Job that it names is not there.
    NO_JOB = "NoSuchJob"
    #: A Job asks for no slots, or says itself which.
    NOT_PLANNED = "JobNotPlanned"
    #: Another plan has the Job.
    JOB_CLAIMED = "JobClaimed"
    #: Another plan has slots of its part of the bed.
    SLOTS_CLAIMED = "SlotsClaimed"
    #: A plan that was made earlier waits for the same.
    OLDER_FIRST = "OlderFirst"
    #: All plans of the namespace have as many Jobs as they can at a time.
    TOO_MANY = "TooManyClaimed"
    #: A Job that was told its slots does not have them yet.
    NOT_CONFIRMED = "NotConfirmed"
    #: Slots that a Job waits for are taken.
    SLOTS_TAKEN = "SlotsTaken"
    #: A Job asks for more slots than there are in the plan's part of the bed.
    TOO_FEW_SLOTS = "TooFewSlots"


class PlanWait(Noun):
    """One thing that a plan waits for."""

    reason: PlanWaitReason
    #: The Job of the plan that it is about, if it is about one.
    job: str = ""
    #: The slots that it is about, as NODE/NUMBER or as a position that the bed does not have.
    slots: tuple[str, ...] = ()
    #: Who has what is waited for, as `job/NAME` or `scheduling/NAME`.
    held_by: str = ""
    #: All that in words.
    message: str = ""


class JobInPlan(Noun):
    """How a Job of a plan goes."""

    name: str
    state: PlannedState = field(default_factory=lambda: PlannedState.ACQUIRING)
    #: The slots that it was told.
    slots: tuple[str, ...] = ()
    #: What became of it, where that says more than its state.
    message: str = ""


class SchedulingStatus(Status):
    """How a plan goes. Written by the slots room alone."""

    #: The generation of the plan that this tells of.
    observed_generation: int = 0
    state: PlanState = field(default_factory=lambda: PlanState.ACQUIRING)
    #: In the order in which they get slots.
    jobs: tuple[JobInPlan, ...] = ()
    total: int = 0
    completed: int = 0
    failed: int = 0
    #: Its part of the bed; none for the whole bed.
    slots: tuple[str, ...] = ()
    waits: tuple[PlanWait, ...] = ()
    conditions: tuple[Condition, ...] = ()


class Scheduling(Resource, tag="Scheduling", kw_only=True):
    """A plan: which Jobs get slots of a TestBed, and in which order."""

    spec: SchedulingSpec
    status: SchedulingStatus = SchedulingStatus()


class ClaimedJob(Noun):
    """A Job that a plan has."""

    name: str
    uid: str
    #: The slots that it is to get, where the plan names them.
    slots: tuple[str, ...] = ()
    #: A version of the store at which the Job was there: one that is missing later is gone.
    version: int = 0


class PlanHolder(Noun):
    """A plan that has all it needs, and is not over."""

    scheduling: str
    uid: str
    test_bed: str
    #: Its Jobs in the order in which they get slots, those that are over included.
    jobs: tuple[ClaimedJob, ...]
    granted_at: Moment
    #: Its part of the bed; not given where that is the whole bed.
    slots: tuple[str, ...] | None = None
    #: A version of the store at which the plan was there: one that is missing later is gone.
    version: int = 0


class SchedulingClaimsSpec(Noun):
    """Nothing: there is one such record in a namespace."""


class SchedulingClaimsStatus(Status):
    """Which plan has what. Written by the slots room alone, by compare-and-set."""

    holders: tuple[PlanHolder, ...] = ()


class SchedulingClaims(Resource, tag="SchedulingClaims", kw_only=True):
    """The record of what the plans of a namespace have."""

    spec: SchedulingClaimsSpec = SchedulingClaimsSpec()
    status: SchedulingClaimsStatus = SchedulingClaimsStatus()


#: What the one record of a namespace is called.
CLAIMS_NAME = "schedulings"

#: States of a Job in a plan that do not change any more.
OVER = frozenset({PlannedState.COMPLETED, PlannedState.FAILED})


def jobs_of(spec: SchedulingSpec) -> tuple[str, ...]:
    """The names of a plan's Jobs, each once, in the order in which they get slots."""
    if spec.slot_based is not None:
        return tuple(job.name for job in spec.slot_based.jobs)
    return tuple(dict.fromkeys(spec.queue_based or ()))


def is_put_back(annotations: dict[str, str], plan_uid: str) -> bool:
    """Whether a Job with these annotations was put back by a plan."""
    return plan_uid in annotations.get(PUT_BACK_ANNOTATION, "").split(",")
