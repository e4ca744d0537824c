"""What fits beside what is held, for claims of one resource and of several."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.admission.claims.claim import COUNT, Amounts, ClaimView, fits, total
from interlock.admission.claims.locks import LOCKS
from interlock.resources.admission import Wait, WaitReason
from interlock.resources.job import LockRequest, WhenTaken
from interlock.resources.lock import lock_name
from interlock.resources.metadata import Key
from interlock.testing.builders import a_holder, a_job, a_request

BOTH = {"cpu": 2, "gpu": 1}


@pytest.mark.parametrize(
    ("beside", "limits", "expected"),
    [
        pytest.param({}, {"cpu": 2, "gpu": 1}, True, id="exact fit"),
        pytest.param({"cpu": 1}, {"cpu": 2, "gpu": 1}, False, id="one of two is short"),
        pytest.param({"cpu": 1}, {"cpu": 3, "gpu": 1}, True, id="room beside another"),
        pytest.param({"disk": 9}, {"cpu": 2, "gpu": 1, "disk": 1}, True, id="not asked for"),
        pytest.param({}, {"cpu": 9}, False, id="there is none of it"),
    ],
)
def test_every_resource_that_is_asked_for_has_to_fit(
    beside: Amounts, limits: Amounts, expected: bool
) -> None:
    assert fits(BOTH, beside, limits) is expected


def test_amounts_add_up_for_each_resource() -> None:
    assert total(({"cpu": 1}, BOTH, {})) == {"cpu": 3, "gpu": 1}


def seen(held: int, ahead: int, before: int | None, **terms: Any) -> ClaimView:
    """A lock with the limit 2, held by so many, granted after so many if at all."""
    job = a_job(locks=(a_request(limit=2, **terms),))
    (ask,) = LOCKS.asks(job)
    return ClaimView(
        ask=ask,
        limits=ask.limits,
        held={COUNT: held},
        ahead=ahead,
        grant=a_holder(job) if before is not None else None,
        before={COUNT: before or 0},
    )


@pytest.mark.parametrize(
    ("held", "ahead", "before", "is_free", "is_taken"),
    [
        pytest.param(1, 0, None, True, False, id="room for one more"),
        pytest.param(2, 0, None, False, True, id="full"),
        pytest.param(0, 1, None, False, False, id="behind another, with room for both"),
        pytest.param(1, 1, None, False, True, id="behind another that takes the rest"),
        pytest.param(2, 0, 1, True, False, id="granted as the last that fits"),
        pytest.param(3, 0, 2, False, True, id="granted on terms that are over"),
    ],
)
def test_a_claim_is_free_taken_or_about_to_be(
    held: int, ahead: int, before: int | None, is_free: bool, is_taken: bool
) -> None:
    claim = seen(held, ahead, before)

    assert (claim.is_free, claim.is_taken) == (is_free, is_taken)


def test_who_starts_anyway_finds_everything_free() -> None:
    assert seen(9, 9, None, when_taken=WhenTaken.ALLOW).is_free


def test_a_lock_is_one_of_its_namespace_and_tells_its_key() -> None:
    request = LockRequest(key="db/1", limit=3, max_waiting=2)
    (ask,) = LOCKS.asks(a_job(namespace="east", locks=(request,)))

    assert ask.key == Key("Lock", "east", lock_name("db/1"))
    assert (ask.amounts, ask.limits, ask.max_waiting) == ({COUNT: 1}, {COUNT: 3}, 2)
    assert ask.said == "lock db/1"
    assert ClaimView(ask=ask, limits=ask.limits).wait == Wait(
        reason=WaitReason.LOCK_TAKEN, key="db/1"
    )
