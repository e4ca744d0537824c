"""What wakes a ControlledJob, and what is seen when it is looked at."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.garbage import INDEXES
from interlock.control.reconciler import Change
from interlock.resources.calendar import Calendar, CalendarSpec
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Metadata, OwnerReference
from interlock.resources.transitions import has_ended
from interlock.schedules.controlled.reconciler import ControlledSide
from interlock.testing.builders import a_job
from interlock.testing.controlled_builders import a_controlled, a_run, a_window, made, moment
from support.controlled_desk import ControlledDesk

MON = "2026-01-05"
NOON = moment(f"{MON} 12:00")
KEY = Key("ControlledJob", "default", "engine")
W = a_controlled()


def a_side(*resources: object) -> ControlledSide:
    jobs: Cache[Job] = Cache("Job", INDEXES)
    controlled: Cache[ControlledJob] = Cache("ControlledJob", INDEXES)
    calendars: Cache[Calendar] = Cache("Calendar", INDEXES)
    side = ControlledSide(jobs, controlled, calendars)
    for resource in resources:
        match resource:
            case Job():
                jobs.note(resource)
            case ControlledJob():
                controlled.note(resource)
                tuple(side.wakes(Change(None, resource)))
            case Calendar():
                calendars.note(resource)
    jobs.settle(10**6)
    return side


def wakes(side: ControlledSide, before: object, after: object) -> list[Key]:
    return list(dict.fromkeys(side.wakes(Change(before, after))))  # type: ignore[arg-type]


def test_its_own_changes_and_those_of_its_jobs_wake_it() -> None:
    side, job = a_side(W), a_run(W, f"{MON} 09:00")

    assert wakes(side, None, W) == [KEY]
    assert wakes(side, None, job) == [KEY]
    assert wakes(side, job, None) == [KEY]
    assert wakes(side, None, a_job("other")) == []


def test_news_of_tasks_alone_wakes_nobody() -> None:
    side, job = a_side(W), a_run(W, f"{MON} 09:00")
    execution = replace(job.status.execution, attempts=5)
    told = replace(job, status=replace(job.status, execution=execution))
    annotated = replace(job, metadata=replace(job.metadata, annotations={"a": "b"}))

    assert wakes(side, job, told) == []
    assert wakes(side, job, annotated) == [KEY]
    assert wakes(side, job, a_run(W, f"{MON} 09:00", 0, "Succeeded")) == [KEY]


def test_a_job_that_loses_its_owner_wakes_the_owner() -> None:
    side, job = a_side(W), a_run(W, f"{MON} 09:00")
    orphan = replace(job, metadata=replace(job.metadata, owner_references=()))

    assert wakes(side, job, orphan) == [KEY]


def test_a_calendar_wakes_those_who_name_it_and_no_others() -> None:
    naming = a_controlled(a_window(exclude=("holidays",)))
    calendar = Calendar(
        metadata=Metadata(name="holidays", namespace="default"), spec=CalendarSpec()
    )
    side = a_side(naming, a_controlled(name="other"))

    assert wakes(side, None, calendar) == [KEY]
    assert wakes(side, naming, W) == [KEY]
    assert wakes(side, None, calendar) == []


def test_defect_25_only_jobs_of_this_very_object_are_seen() -> None:
    mine, namesakes = a_run(W, f"{MON} 09:00", 0), a_run(W, f"{MON} 09:00", 1)
    owner = namesakes.metadata.owner_references[0]
    elder = replace(namesakes, metadata=replace(
        namesakes.metadata, owner_references=(replace(owner, uid="uid-elder"),)))  # fmt: skip
    friend = OwnerReference(api_version="v1", kind="X", name="x", uid=W.metadata.uid)
    befriended = replace(a_job("friend"), metadata=replace(
        a_job("friend").metadata, owner_references=(friend,)))  # fmt: skip
    side = a_side(W, mine, elder, befriended)

    view = side._view(W, NOON)

    assert [job.metadata.name for job in view.jobs] == [mine.metadata.name]


def test_a_plan_is_read_once_for_each_version_of_it() -> None:
    side = a_side(W)
    first = side._view(W, NOON).timetable

    assert side._view(W, NOON).timetable is first
    changed = replace(W, metadata=replace(W.metadata, generation=2))
    assert side._view(changed, NOON).timetable is not first


def test_a_name_that_somebody_has_is_not_tried() -> None:
    at = int(moment(f"{MON} 09:00").timestamp())
    side = a_side(W, a_job(f"engine-{at}-0"), a_job(f"engine-{at}-1"))

    (job,) = made(side.look(KEY, NOON))

    assert job.metadata.name == f"engine-{at}-2"


def test_what_is_gone_is_looked_at_without_harm() -> None:
    assert a_side().look(KEY, NOON).actions == ()


def test_a_look_never_touches_what_it_sees() -> None:
    desk = ControlledDesk(W, at=NOON)
    desk.settle()
    desk.plane.hear()
    before = (desk.controlled, desk.jobs)

    desk.plane.look(desk.now)

    assert (desk.controlled, desk.jobs) == before
    assert not any(map(has_ended, desk.jobs.values()))


def test_what_became_of_a_job_is_known_though_another_has_its_name_by_now() -> None:
    desk = ControlledDesk(W, at=NOON)
    rival = desk.a_plane()
    rival.hear()
    late = rival.look(desk.now)
    desk.settle()
    (name,) = desk.live
    desk.end(name)
    desk.plane.hear()
    desk.delete(name)
    desk.work()
    assert rival.apply(late)

    desk.settle()

    assert desk.jobs == {}
    window = desk.controlled.status.window
    assert window is not None
    assert window.outcome == "Finished"
