"""Each mark of ours means something at certain moments, and is refused at all others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import interlock
from interlock.errors import Problem
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.calendar import Calendar, CalendarSpec
from interlock.resources.controlled_job import (
    ControlledJob,
    ControlledJobSpec,
    Override,
    OverrideAction,
)
from interlock.resources.door.checking import check_new, check_update
from interlock.resources.job import (
    CREATOR_ANNOTATION,
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    RELEASED_BY_ANNOTATION,
    Job,
    JobSpec,
    JobStatus,
)
from interlock.resources.job_config import JobConfig, JobConfigSpec, JobConfigStatus
from interlock.resources.marks import MARKS, PREFIX, Given, Mark, completed, with_kept_marks
from interlock.resources.metadata import Metadata, Resource
from interlock.resources.process import NoopSpec
from interlock.resources.schedule import (
    STOPPED_BECAUSE_ANNOTATION,
    STOPPED_BY_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    SUSPENDED_BY_ANNOTATION,
    Books,
    JobTemplate,
    why_told_to_stop,
)
from interlock.resources.tasks import ExecutionStatus, JobResult, TaskState, TaskStatus
from interlock.testing.builders import T0, a_job

WORK = JobTemplate(spec=JobSpec(noop=NoopSpec()))
#: Names with our prefix that are no marks of resources: finalizers, and what is on pods and nodes.
ELSEWHERE = {
    "tasks",
    "contents",
    "claims",
    "pod",
    "launch",
    "job",
    "job-uid",
    "task",
    "attempt",
}


def a_thing(kind: str, **spec: Any) -> Resource:
    metadata = Metadata(name="it", namespace="default", resource_version="1")
    match kind:
        case "Job":
            return a_job("it", **spec)
        case "JobConfig":
            return JobConfig(metadata=metadata, spec=JobConfigSpec(template=WORK, **spec))
        case "ControlledJob":
            asked = ControlledJobSpec(job_template=WORK, **spec)
            return ControlledJob(metadata=metadata, spec=asked)
        case _:
            return Calendar(metadata=metadata, spec=CalendarSpec())


def marked(thing: Resource, mark: Mark, text: str = "0-0") -> Any:
    place = "labels" if mark.is_label else "annotations"
    held = getattr(thing.metadata, place)
    return replace(thing, metadata=replace(thing.metadata, **{place: {**held, mark.name: text}}))


def noted(job: Any, **notes: str | None) -> Any:
    """The resource with these annotations, by the ends of their names; None takes one away."""
    held = dict(job.metadata.annotations)
    for name, text in notes.items():
        full = PREFIX + name.replace("_", "-")
        held.pop(full, None)
        if text is not None:
            held[full] = text
    return replace(job, metadata=replace(job.metadata, annotations=held))


def unknown(job: Job, attempts: int = 1) -> Job:
    tasks = tuple(
        TaskStatus(name=f"it-{n}-0", index=n, attempt=0, state=TaskState.UNKNOWN, created_at=T0)
        for n in range(attempts)
    )
    execution = ExecutionStatus(total=attempts, started_at=T0, active=tasks)
    admission = AdmissionStatus(phase=AdmissionPhase.ADMITTED)
    return replace(job, status=JobStatus(admission=admission, execution=execution))


def over(job: Job) -> Job:
    execution = ExecutionStatus(result=JobResult.KILLED, ended_at=T0)
    return replace(job, status=JobStatus(execution=execution))


def messages(problems: tuple[Problem, ...]) -> list[str]:
    return [problem.message for problem in problems]


def test_every_name_of_ours_in_the_code_is_in_the_table() -> None:
    root = Path(interlock.__file__).parent
    names = {
        name
        for path in root.rglob("*.py")
        if "testing" not in path.parts
        for name in re.findall(r'"interlock\.dev/([a-z-]+)"', path.read_text())
    }
    assert names - ELSEWHERE == {mark.name.removeprefix(PREFIX) for mark in MARKS}


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.name)
def test_a_mark_may_be_given_when_it_means_something(mark: Mark) -> None:
    given = mark.given
    for kind in mark.kinds:
        plain = a_thing(kind)
        may_be_new = given in (Given.WITH_OBJECT, Given.UNTIL_ACCOUNTED)
        assert bool(check_new(marked(plain, mark))) is not may_be_new
        may_be_added = given is Given.UNTIL_ACCOUNTED
        assert bool(check_update(plain, marked(plain, mark))) is not may_be_added
        if given in (Given.WHILE_HELD, Given.WHILE_STOPPED_OR_HELD):
            held = a_thing(kind, suspend=True)
            assert check_new(marked(held, mark)) == ()
            assert check_update(plain, marked(held, mark)) == ()
        if given in (Given.WHILE_STOPPED, Given.WHILE_STOPPED_OR_HELD) and kind == "Job":
            stopped = a_job("it", kill_at=T0)
            assert check_update(plain, marked(stopped, mark)) == ()
            assert messages(check_update(over(stopped), marked(over(stopped), mark)))
        if given is Given.WHILE_UNKNOWN:
            assert isinstance(plain, Job)
            lost = unknown(plain)
            assert check_update(lost, marked(lost, mark)) == ()


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.name)
def test_a_mark_is_for_its_kinds_alone(mark: Mark) -> None:
    others = {"Job", "JobConfig", "ControlledJob", "Calendar"} - set(mark.kinds)
    for kind in others:
        [problem] = check_new(marked(a_thing(kind), mark))
        assert "alone" in problem.message
        assert mark.name in problem.path


@pytest.mark.parametrize("place", ["labels", "annotations"])
@pytest.mark.parametrize("kind", ["Job", "JobConfig", "ControlledJob", "Calendar"])
def test_what_is_not_in_the_table_is_refused_with_its_path(kind: str, place: str) -> None:
    plain = a_thing(kind)
    strange = replace(
        plain, metadata=replace(plain.metadata, **{place: {"interlock.dev/relaese": "yes"}})
    )
    for problems in (check_new(strange), check_update(plain, strange)):
        assert [problem.path for problem in problems] == [
            f'metadata.{place}["interlock.dev/relaese"]'
        ]
    # What was taken by older rules does not keep its object from being changed.
    assert check_update(strange, strange) == ()
    foreign = {"note": "x", "example.com/release": "x", "x.interlock.dev/y": "z"}
    assert check_new(replace(plain, metadata=replace(plain.metadata, **{place: foreign}))) == ()


def test_a_release_that_comes_too_early_is_refused() -> None:
    job = a_job("it")
    [problem] = check_update(job, noted(job, release="I was in a hurry"))
    assert problem.message == ("may be given while the Job is Unknown, for the attempts that are")


def test_a_release_is_about_the_attempts_that_are_unknown_now() -> None:
    lost = unknown(a_job("it"), attempts=2)
    given = completed(lost, noted(lost, release="looked"), "")

    assert check_update(lost, given) == ()
    assert given.metadata.annotations[RELEASED_ATTEMPTS_ANNOTATION] == "0-0,1-0"
    assert RELEASED_BY_ANNOTATION not in given.metadata.annotations
    wrong = noted(lost, release="looked", released_attempts="0-0,7-0")
    assert [p.path for p in check_update(lost, completed(lost, wrong, ""))] == [
        'metadata.annotations["interlock.dev/release"]',
        'metadata.annotations["interlock.dev/released-attempts"]',
    ]
    taken_back = completed(given, noted(given, release=None), "")
    assert taken_back.metadata.annotations == {}


def test_marks_that_were_written_with_an_object_stay() -> None:
    job = noted(a_job("it"), scheduled_at="2026-01-05T09:00:00Z", creator="alice")
    empty = replace(job, metadata=replace(job.metadata, annotations={"note": "mine"}))

    kept, names = with_kept_marks(job, empty)

    assert kept.metadata.annotations == {**job.metadata.annotations, "note": "mine"}
    assert set(names) == set(job.metadata.annotations)
    assert check_update(job, noted(job, creator="bob"))[0].message == (
        "may be given with the object, and stays as it is"
    )
    stopped = noted(a_job("it", kill_at=T0), stopped_by="alice")
    assert with_kept_marks(stopped, noted(stopped, stopped_by=None))[1] == ()
    assert with_kept_marks(over(stopped), noted(over(stopped), stopped_by=None))[1] == (
        STOPPED_BY_ANNOTATION,
    )


def test_an_account_from_elsewhere_is_taken_until_there_is_one_of_its_own() -> None:
    config = a_thing("JobConfig")
    assert isinstance(config, JobConfig)
    busy = replace(config, status=JobConfigStatus(books=Books(accounted_to=T0)))
    held = replace(busy, spec=replace(busy.spec, suspend=True))

    at = "2026-01-05T09:00:00Z"
    assert check_update(config, noted(config, accounted_to=at)) == ()
    assert check_update(held, noted(held, accounted_to=at)) == ()
    assert len(check_update(busy, noted(busy, accounted_to=at))) == 1


# Who did it: the door knows better than the client.


@pytest.mark.parametrize("kind", ["Job", "JobConfig", "ControlledJob"])
def test_whoever_creates_something_is_its_creator(kind: str) -> None:
    claims = noted(a_thing(kind), creator="somebody else")

    assert completed(None, claims, "alice").metadata.annotations == {CREATOR_ANNOTATION: "alice"}
    assert completed(None, claims, "") == a_thing(kind)
    assert completed(None, a_thing(kind), "alice").metadata.annotations


def test_whoever_stops_a_job_is_named_whatever_the_client_says() -> None:
    job = a_job("it")
    claims = noted(
        a_job("it", kill_at=T0),
        suspend_reason="user-stop",
        stopped_because="stopped by bob: he said so",
        stopped_by="bob",
    )

    stopped = completed(job, claims, "alice")

    assert stopped.metadata.annotations[STOPPED_BY_ANNOTATION] == "alice"
    assert stopped.metadata.annotations[STOPPED_BECAUSE_ANNOTATION] == "stopped: he said so"
    assert why_told_to_stop(stopped) == "stopped by alice: he said so"
    assert why_told_to_stop(completed(job, claims, "")) == "stopped by a person: he said so"
    again = completed(stopped, noted(stopped, stopped_by="bob"), "carol")
    assert again.metadata.annotations[STOPPED_BY_ANNOTATION] == "carol"
    bare = completed(job, a_job("it", kill_at=T0), "alice")
    assert why_told_to_stop(bare) == "stopped by alice"
    going_on = completed(bare, noted(job, stopped_by="alice"), "carol")
    assert going_on.metadata.annotations == {}


@pytest.mark.parametrize(
    ("because", "who", "told"),
    [
        ("stopped", "alice", "stopped by alice"),
        ("stopped", "", "stopped by a person"),
        ("restarted: new version", "alice", "restarted by alice: new version"),
        ("stopped by bob", "", "stopped by bob"),
        ("its window closed", "alice", "its window closed"),
    ],
)
def test_the_words_for_a_stop(because: str, who: str, told: str) -> None:
    job = noted(a_job("it", kill_at=T0), stopped_because=because, stopped_by=who or None)

    assert why_told_to_stop(job) == told


@pytest.mark.parametrize("kind", ["Job", "JobConfig", "ControlledJob"])
def test_whoever_suspends_something_is_named(kind: str) -> None:
    plain, held = a_thing(kind), noted(a_thing(kind, suspend=True), suspended_by="bob")

    named = completed(plain, held, "alice")

    assert named.metadata.annotations[SUSPENDED_BY_ANNOTATION] == "alice"
    assert completed(plain, held, "") == a_thing(kind, suspend=True)
    # A change that is about something else leaves the name as it is.
    assert completed(named, named, "carol") == named
    other = completed(named, noted(named, suspend_reason="month end"), "carol")
    assert other.metadata.annotations[SUSPENDED_BY_ANNOTATION] == "carol"
    resumed = completed(named, noted(plain, suspended_by="alice"), "carol")
    assert resumed.metadata.annotations == {}
    assert SUSPEND_REASON_ANNOTATION not in named.metadata.annotations


def test_whoever_releases_a_job_is_named() -> None:
    lost = unknown(a_job("it"))
    given = completed(lost, noted(lost, release="looked", released_by="bob"), "alice")

    assert given.metadata.annotations == {
        RELEASE_ANNOTATION: "looked",
        RELEASED_ATTEMPTS_ANNOTATION: "0-0",
        RELEASED_BY_ANNOTATION: "alice",
    }
    assert check_update(lost, given) == ()


def test_exceptions_are_in_the_name_of_whoever_makes_them() -> None:
    def held(by: str, reason: str = "") -> Override:
        return Override(action=OverrideAction.HOLD, begin=T0, until=T0, by=by, reason=reason)

    before = a_thing("ControlledJob", overrides=(held("alice", "first"),))
    after = a_thing("ControlledJob", overrides=(held("mallory", "first"), held("alice", "second")))

    signed = completed(before, after, "bob")

    assert isinstance(signed, ControlledJob)
    assert [(one.reason, one.by) for one in signed.spec.overrides] == [
        ("first", "alice"),
        ("second", "bob"),
    ]
    unsigned = completed(before, after, "")
    assert isinstance(unsigned, ControlledJob)
    assert [one.by for one in unsigned.spec.overrides] == ["alice", ""]
