"""Lists that are read in parts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.errors import BadRequestError, ExpiredError
from interlock.store.contract import Selection
from interlock.store.paging import HELD_FOR, Paging
from interlock.testing.builders import T0, a_job

JOBS = tuple(a_job(f"job-{number}") for number in range(5))
ALL = Selection()


def test_a_whole_list_needs_no_token() -> None:
    page = Paging().first("Job", ALL, JOBS, version=7, limit=5, now=T0)

    assert (page.items, page.version, page.continue_token) == (JOBS, 7, "")


def test_parts_follow_one_another() -> None:
    paging = Paging()
    first = paging.first("Job", ALL, JOBS, version=7, limit=2, now=T0)
    rest = paging.next(first.continue_token, "Job", ALL, limit=None, now=T0)
    again = paging.next(first.continue_token, "Job", ALL, limit=2, now=T0)

    assert first.remaining == 3
    assert (*first.items, *rest.items) == JOBS
    assert again.items == JOBS[2:4]


def test_what_is_left_is_not_told_of_a_selection() -> None:
    chosen = Selection(labels="a=b")
    page = Paging().first("Job", chosen, JOBS, version=7, limit=2, now=T0)

    assert page.remaining is None


def test_a_token_fits_its_own_list_only() -> None:
    paging = Paging()
    token = paging.first("Job", ALL, JOBS, version=7, limit=2, now=T0).continue_token

    with pytest.raises(BadRequestError, match="another list"):
        paging.next(token, "Lock", ALL, limit=2, now=T0)
    with pytest.raises(BadRequestError, match="another list"):
        paging.next(token, "Job", Selection(namespace="x"), limit=2, now=T0)


def test_a_list_is_not_held_for_ever() -> None:
    paging = Paging()
    token = paging.first("Job", ALL, JOBS, version=7, limit=2, now=T0).continue_token
    late = T0 + HELD_FOR + timedelta(seconds=1)

    with pytest.raises(ExpiredError):
        paging.next(token, "Job", ALL, limit=2, now=late)


def test_few_lists_are_held() -> None:
    paging = Paging(held_lists=2)
    tokens = [
        paging.first("Job", ALL, JOBS, version=version, limit=2, now=T0).continue_token
        for version in (7, 8, 9)
    ]

    with pytest.raises(ExpiredError):
        paging.next(tokens[0], "Job", ALL, limit=2, now=T0)
    assert paging.next(tokens[1], "Job", ALL, limit=2, now=T0).version == 8


def test_a_token_of_another_run_is_expired() -> None:
    token = Paging().first("Job", ALL, JOBS, version=7, limit=2, now=T0).continue_token
    later = Paging()
    later.first("Job", ALL, JOBS, version=8, limit=2, now=T0)

    with pytest.raises(ExpiredError):
        later.next(token, "Job", ALL, limit=2, now=T0)
