"""Every reason to wait has its words, and one of another version does no harm."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from interlock.resources.admission import Wait, WaitReason
from interlock.resources.waits import (
    WORDS,
    Facts,
    claim_words,
    column_words,
    event_words,
    is_brief,
    log_words,
    why_words,
)
from interlock.testing.builders import T0, a_job

LATER = T0 + timedelta(minutes=5)
JOB = a_job("job", suspend=True, suspend_reason="month end")
NEWER = msgspec.json.decode(b'{"reason": "GateShut", "key": "all"}', type=Wait)


def test_every_reason_has_words() -> None:
    assert set(WORDS) == set(WaitReason)


@pytest.mark.parametrize(
    ("wait", "log", "column", "event", "why"),
    [
        pytest.param(
            Wait(reason=WaitReason.SUSPENDED),
            "is suspended",
            "suspended",
            "suspended (month end)",
            "it is suspended: month end; start it with: interlock resume job",
            id="suspended",
        ),
        pytest.param(
            Wait(reason=WaitReason.NOT_YET_DUE, until=LATER),
            "is not due yet",
            "start in 5m",
            "not before 2026-01-05T12:05:00+00:00",
            "it is not due before 12:05:00 UTC",
            id="not due",
        ),
        pytest.param(
            Wait(reason=WaitReason.NOT_YET_DUE),
            "is not due yet",
            "NotYetDue",
            "not before later",
            "it is not due yet",
            id="not due, and nobody says until when",
        ),
        pytest.param(
            Wait(reason=WaitReason.LOCK_TAKEN, key="db"),
            "waits for lock db",
            "lock db",
            "lock db is taken",
            "lock db is free; others are before it in the line",
            id="a lock",
        ),
        pytest.param(
            NEWER,
            "waits for GateShut all",
            "GateShut all",
            "GateShut all",
            "it waits for a reason of another version: GateShut all",
            id="of another version",
        ),
    ],
)
def test_the_words_of_a_wait(wait: Wait, log: str, column: str, event: str, why: str) -> None:
    assert log_words((wait,)) == log
    assert column_words(wait, T0) == column
    assert event_words(wait, JOB) == event
    assert why_words(wait, Facts(JOB, T0)) == why


def test_who_waits_for_nothing_is_due() -> None:
    assert log_words(()) == "is due"


def test_only_a_wait_for_a_claim_names_one() -> None:
    assert claim_words(Wait(reason=WaitReason.LOCK_TAKEN, key="db")) == "lock db"
    assert claim_words(Wait(reason=WaitReason.SUSPENDED)) == ""
    assert claim_words(NEWER) == "all"


def test_a_wait_that_the_system_ends_at_once_is_nobodys_business() -> None:
    assert [reason for reason in WaitReason if is_brief(Wait(reason=reason))] == ["NotInBooks"]


def test_a_reason_of_another_version_is_kept_as_it_was_stored() -> None:
    assert msgspec.json.encode(NEWER) == b'{"reason":"GateShut","key":"all"}'
    assert msgspec.json.decode(msgspec.json.encode(NEWER), type=Wait) == NEWER
