"""The admission status: whether a Job may start, and what it waits for until then."""

from __future__ import annotations

from enum import StrEnum

from interlock.resources.metadata import Moment, Noun


class AdmissionPhase(StrEnum):
    """How far a Job has come through the door."""

    #: Not looked at yet, or waiting for what `waits` says.
    WAITING = "Waiting"
    #: May run.
    ADMITTED = "Admitted"
    #: Being put back: it still holds everything, and its attempts are being stopped. It waits again
    #: once they are proven gone.
    EVICTING = "Evicting"
    #: Will never run. Final.
    REFUSED = "Refused"


class WaitReason(StrEnum):
    """Why a Job has not started."""

    #: A person holds it back: spec.suspend.
    SUSPENDED = "Suspended"
    #: spec.startAfter has not come.
    NOT_YET_DUE = "NotYetDue"
    #: Its schedule has not written it down yet: only a Job in its owner's books may start.
    NOT_IN_BOOKS = "NotInBooks"
    #: A lock it needs has no room, or others are before it in the line.
    LOCK_TAKEN = "LockTaken"
    #: The quota of its Queue has no room for it, or others are before it in the line.
    QUOTA_TAKEN = "QuotaTaken"
    #: It asks for more than its Queue has in all, or for what the Queue does not have.
    QUOTA_TOO_SMALL = "QuotaTooSmall"
    #: Its Queue is not there.
    NO_QUEUE = "NoSuchQueue"
    #: Its Queue is not for its namespace.
    QUEUE_NOT_ALLOWED = "QueueNotAllowed"
    #: Its Queue chooses namespaces by their labels, and those of its namespace cannot be read here.
    NAMESPACE_UNKNOWN = "NamespaceUnknown"
    #: Its Queue lets nobody in: spec.stop.
    QUEUE_STOPPED = "QueueStopped"
    #: It has room, and nobody is let in before others of its Queue are ready.
    GATE_CLOSED = "WaitingForPodsReady"
    #: Not enough slots of its TestBed are free, or others are before it in the line.
    SLOTS_TAKEN = "SlotsTaken"
    #: Its TestBed has no such slots, or not as many.
    BED_TOO_SMALL = "TestBedTooSmall"
    #: Its TestBed is not there.
    NO_TEST_BED = "NoSuchTestBed"
    #: It waits for slots that a Scheduling gives it, and none has claimed it.
    UNCLAIMED = "Unclaimed"
    #: A Scheduling has claimed it, and has not said yet which slots it gets.
    IN_PLAN = "InPlan"
    #: It was not ready in time, and waits for its next try.
    BACKOFF = "RequeueBackoff"
    #: A person took it out of its Queue: spec.active is false.
    DEACTIVATED = "Deactivated"

    @classmethod
    def _missing_(cls, value: object) -> WaitReason | None:
        """Take a reason that a newer version stored as it is: its Job still has to be read."""
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


class EvictionReason(StrEnum):
    """Why a Job that was let in is put back."""

    #: A person said so: interlock requeue.
    REQUEUED = "Requeued"
    #: Its Queue is drained: spec.stop is HoldAndDrain.
    QUEUE_STOPPED = "QueueStopped"
    #: Its spec.active is false.
    DEACTIVATED = "Deactivated"
    #: Not all of its tasks were ready in time: spec.waitForPodsReady.
    PODS_READY_TIMEOUT = "PodsReadyTimeout"
    #: A Job that comes before it in its Queue needs the room: spec.preemption.
    PREEMPTED = "Preempted"
    #: It asks for other slots than it has: spec.slots was changed, by a person or a Scheduling.
    SLOTS_CHANGED = "SlotsChanged"


class RefusalReason(StrEnum):
    """Why a Job will never start, or never again."""

    #: The definition is not good; it came into the store past the door.
    INVALID = "Invalid"
    #: A lock with whenTaken: Forbid was taken.
    LOCK_FORBIDDEN = "LockForbidden"
    #: As many Jobs as `maxWaiting` says were in the line before it.
    QUEUE_FULL = "QueueFull"
    #: spec.startBy passed while it waited.
    START_DEADLINE_PASSED = "StartDeadlinePassed"
    #: It was told to stop before it started, or started again.
    KILLED_BEFORE_START = "KilledBeforeStart"
    #: A newer Job with whenTaken: Replace took its place in the line.
    REPLACED = "Replaced"
    #: It was deleted before it started, or started again.
    DELETED_BEFORE_START = "DeletedBeforeStart"


class Wait(Noun):
    """One thing a Job waits for."""

    reason: WaitReason
    #: The lock key, for waits that have one.
    key: str = ""
    #: The earliest moment at which this wait can end by itself; None when only an event ends it.
    until: Moment | None = None


class Grant(Noun):
    """A lock that an admitted Job holds, with the token that proves it."""

    key: str
    token: int


class QuotaGrant(Noun):
    """The part of a Queue's quota that an admitted Job holds, with the token that proves it."""

    queue: str
    token: int
    #: How many tasks may run at a time.
    tasks: int
    #: Whether the Job has to be ready in time.
    awaits_ready: bool = False
    #: Whether its tasks have to be placed in time.
    awaits_places: bool = False


class SlotGrant(Noun):
    """The slots that an admitted Job has, with the token that proves it."""

    test_bed: str
    token: int
    ids: tuple[str, ...]


class Requeue(Noun):
    """How often a Job was put back since it was not ready in time, and when it is tried again."""

    count: int
    at: Moment | None = None


class EvictionCause(StrEnum):
    """What a Job was put back for in particular."""

    #: It was not ready in time since it was let in.
    WAIT_FOR_START = "WaitForStart"
    #: It was ready, and was not again in time.
    WAIT_FOR_RECOVERY = "WaitForRecovery"
    #: Some of its tasks had no place to run for too long.
    UNSCHEDULED = "Unscheduled"
    #: It was not ready in time as often as it may be.
    REQUEUING_LIMIT_EXCEEDED = "RequeuingLimitExceeded"
    #: Another Queue of its cohort takes back what it has lent, or has the smaller part of it.
    IN_COHORT = "InCohort"


class Eviction(Noun):
    """How a Job is, or was last, put back."""

    reason: EvictionReason
    began_at: Moment
    #: What it was put back for in particular: WaitForStart, WaitForRecovery, Unscheduled,
    #: RequeuingLimitExceeded.
    cause: str = ""
    #: Who ordered it, and what they said about it.
    by: str = ""
    message: str = ""
    #: When everything was given back; not given while attempts may still be doing something.
    ended_at: Moment | None = None


class AdmissionStatus(Noun):
    """Written by the admission room alone."""

    phase: AdmissionPhase = AdmissionPhase.WAITING
    #: The Job's place in the order of creation: a version of the store, that at which it was
    #: created where the store tells it. 0 until first looked at.
    #: One that a person puts back takes a new place, behind those who wait; others keep theirs.
    sequence: int = 0
    #: Grants of an earlier epoch were given back and count for nothing.
    epoch: int = 0
    waits: tuple[Wait, ...] = ()
    grants: tuple[Grant, ...] = ()
    #: What it holds of its Queue's quota.
    quota: QuotaGrant | None = None
    #: The slots that it has.
    slots: SlotGrant | None = None
    admitted_at: Moment | None = None
    refused_at: Moment | None = None
    refusal: RefusalReason | None = None
    message: str = ""
    #: The newer Job that takes this one's place; the execution room stops it then.
    replaced_by: str = ""
    #: How often it was put back, and how that went the last time.
    evictions: int = 0
    #: How its tries to be ready went; kept until it is taken out of its Queue for it.
    requeue: Requeue | None = None
    eviction: Eviction | None = None
