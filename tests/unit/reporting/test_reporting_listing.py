"""Lists of Jobs: filters, sort, and cursors that neither lose nor repeat a Job."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.errors import BadRequestError
from interlock.reporting.job_index import JobIndex
from interlock.reporting.listing import page, read_listing
from interlock.reporting.live_jobs import LiveJobs
from interlock.resources.job import CREATOR_ANNOTATION, Job, JobPhase, JobStatus
from interlock.testing.builders import T0, a_job


class Told:
    """A roster and a cache that are told the same."""

    def __init__(self, *jobs: Job) -> None:
        self.roster = JobIndex()
        self.jobs: Cache[Job] = Cache("Job")
        for job in jobs:
            self.put(job)

    def put(self, job: Job) -> None:
        before = self.jobs.note(job)
        self.roster.observe(Change(before if before is not job else None, job))

    def drop(self, job: Job) -> None:
        self.roster.observe(Change(self.jobs.drop(job.key, job.version + 1), None))

    def page(self, **query: str) -> tuple[list[str], str]:
        listing = read_listing(query)
        live = LiveJobs(self.roster, self.jobs)
        told = page(listing, live.part(listing), version=live.version)
        return [item.name for item in told.items], told.next


def made(index: int, *, phase: JobPhase = JobPhase.QUEUED, creator: str = "", **labels: str) -> Job:
    return a_job(
        f"job-{index}",
        status=JobStatus(phase=phase),
        metadata={
            "creation_timestamp": T0 + timedelta(seconds=index),
            "labels": labels,
            "annotations": {CREATOR_ANNOTATION: creator} if creator else {},
        },
    )


def test_the_newest_come_first_unless_asked_otherwise() -> None:
    told = Told(*(made(i) for i in range(3)))

    assert told.page()[0] == ["job-2", "job-1", "job-0"]
    assert told.page(sort="created")[0] == ["job-0", "job-1", "job-2"]


@pytest.mark.parametrize("sort", ["created", "-created"])
def test_a_cursor_neither_loses_nor_repeats_what_stays(sort: str) -> None:
    told = Told(*(made(i) for i in range(10)))
    names, cursor = told.page(limit="4", sort=sort)
    told.put(made(50))
    told.drop(made(5))
    while cursor:
        more, cursor = told.page(limit="4", sort=sort, cursor=cursor)
        names += more

    assert len(names) == len(set(names))
    assert {f"job-{i}" for i in range(10) if i != 5} <= set(names)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({"state": "running"}, ["job-1"], id="state"),
        pytest.param({"state": "Running,Queued"}, ["job-1", "job-0"], id="states"),
        pytest.param({"creator": "ana"}, ["job-2"], id="creator"),
        pytest.param({"label": "team=db"}, ["job-2"], id="label"),
        pytest.param({"id": "uid-default-job-1"}, ["job-1"], id="id"),
        pytest.param({"createdAfter": "2026-01-05T12:00:01Z"}, ["job-2"], id="after"),
        pytest.param({"createdBefore": "2026-01-05T12:00:01Z"}, ["job-0"], id="before"),
        pytest.param({"namespace": "other"}, [], id="namespace"),
    ],
)
def test_filters(query: dict[str, str], expected: list[str]) -> None:
    told = Told(
        made(0),
        made(1, phase=JobPhase.RUNNING),
        made(2, phase=JobPhase.FAILED, creator="ana", team="db"),
    )

    assert told.page(**query)[0] == expected


@pytest.mark.parametrize(
    ("made_for", "used_with"),
    [
        pytest.param({}, {"sort": "created"}, id="another order"),
        pytest.param({"sort": "created"}, {}, id="no order"),
        pytest.param({}, {"state": "queued"}, id="a state more"),
        pytest.param({"state": "queued"}, {}, id="a state less"),
        pytest.param({"state": "queued"}, {"completion_state": "success"}, id="another facet"),
        pytest.param({}, {"creator": "ana"}, id="a creator"),
        pytest.param({}, {"owner": "ana"}, id="an owner"),
        pytest.param({}, {"ids": "uid-default-job-1"}, id="ids"),
        pytest.param({}, {"namespace": "default"}, id="a namespace"),
        pytest.param({}, {"label": "!team"}, id="a label"),
        pytest.param({}, {"createdBefore": "2026-02-01T00:00:00Z"}, id="a moment"),
    ],
)
def test_a_cursor_is_good_for_its_own_list_only(
    made_for: dict[str, str], used_with: dict[str, str]
) -> None:
    told = Told(*(made(i) for i in range(3)))
    _, cursor = told.page(limit="1", **made_for)

    with pytest.raises(BadRequestError, match="another list") as refused:
        told.page(**used_with, cursor=cursor)
    assert refused.value.reason == "CursorOfAnotherList"


@pytest.mark.parametrize(
    ("made_for", "used_with"),
    [
        pytest.param({"limit": "1"}, {"limit": "2"}, id="another limit"),
        pytest.param({}, {"sort": "-created"}, id="the usual order"),
        pytest.param({"state": "queued,Running"}, {"state": "running,queued"}, id="states"),
        pytest.param(
            {"ids": "uid-default-job-0,uid-default-job-1"},
            {"id": "uid-default-job-1,uid-default-job-0"},
            id="ids",
        ),
        pytest.param(
            {"createdBefore": "2026-02-01T00:00:00Z"},
            {"createdBefore": "2026-02-01T01:00:00+01:00"},
            id="a moment",
        ),
        pytest.param({}, {"creator": "", "state": "", "namespace": "", "label": ""}, id="nothing"),
    ],
)
def test_a_cursor_is_good_for_its_list_however_it_is_asked_for(
    made_for: dict[str, str], used_with: dict[str, str]
) -> None:
    told = Told(*(made(i) for i in range(3)))
    first, cursor = told.page(**{"limit": "1", **made_for})
    rest, _ = told.page(**used_with, cursor=cursor)

    assert rest
    assert not set(rest) & set(first)


@pytest.mark.parametrize("ids", ["", ",", ",,"])
@pytest.mark.parametrize("name", ["ids", "id"])
def test_no_ids_are_not_all(name: str, ids: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        Told(made(0)).page(**{name: ids})
    assert refused.value.reason == "NoIds"


def test_a_job_is_found_under_its_newest_state_only() -> None:
    told = Told(made(0))
    moved = made(0, phase=JobPhase.RUNNING)
    told.put(replace(moved, metadata=replace(moved.metadata, resource_version="2")))

    assert told.page(state="Queued")[0] == []
    assert told.page(state="Running")[0] == ["job-0"]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param({"limit": "0"}, id="no items"),
        pytest.param({"limit": "-1"}, id="negative"),
        pytest.param({"limit": "99999999999999999999"}, id="huge"),
        pytest.param({"state": "Flying"}, id="no such state"),
        pytest.param({"sort": "name"}, id="no such order"),
        pytest.param({"cursor": "!!"}, id="no cursor"),
        pytest.param({"cursor": "eA=="}, id="not our cursor"),
        pytest.param({"createdAfter": "yesterday"}, id="no moment"),
        pytest.param({"colour": "red"}, id="unknown"),
        pytest.param({"label": "a in (b"}, id="bad selector"),
    ],
)
def test_what_cannot_be_read_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(BadRequestError):
        Told(made(0)).page(**query)
