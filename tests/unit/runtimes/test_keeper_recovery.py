"""What a new keeper makes of the attempts an old one left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlock.resources.tasks import ReportState, TaskId
from interlock.runtimes.keeper.kernel import Stat
from interlock.runtimes.keeper.ledger import Ledger, report_of
from interlock.runtimes.keeper.orders import ProcessOrder
from interlock.runtimes.keeper.records import (
    Booted,
    Forgot,
    Founded,
    Intended,
    MainEnded,
    Over,
    Record,
    Spawning,
    Started,
    StopAsked,
)
from interlock.runtimes.keeper.recovery import GONE_UNSEEN, MAYBE_RAN, RESTARTED, find_out
from interlock.testing.builders import T0

SERIAL = (7 << 32) + 1
PID, TICKS = 500, 9000
ALIVE = Stat("S", 1, PID, PID, TICKS)
REUSED = Stat("S", 1, PID, PID, TICKS + 1)
ZOMBIE = Stat("Z", 1, PID, PID, TICKS)


def an_order(index: int = 0, attempt: int = 1) -> ProcessOrder:
    return ProcessOrder(
        job_uid="uid",
        index=index,
        attempt=attempt,
        name="job-0-1",
        namespace="default",
        job="job",
        command=("true",),
    )


INTENT = Intended(SERIAL, (an_order(),))
SPAWNING = Spawning((SERIAL,))
STARTED = Started(SERIAL, PID, TICKS, T0)


def a_ledger(*records: Record) -> Ledger:
    ledger = Ledger()
    for record in (Founded(7, 7 << 32), Booted("boot"), *records):
        ledger.apply(record)
    return ledger


def stats(known: Stat | None) -> Callable[[int], Stat | None]:
    return lambda pid: known if pid == PID else None


@pytest.mark.parametrize(
    ("records", "stat", "expected"),
    [
        pytest.param((INTENT,), None, "start", id="never begun is started"),
        pytest.param((INTENT, SPAWNING), None, MAYBE_RAN, id="begun and nothing found"),
        pytest.param((INTENT, SPAWNING, STARTED), ALIVE, "adopt", id="alive is adopted"),
        pytest.param((INTENT, SPAWNING, STARTED), None, GONE_UNSEEN, id="gone unseen"),
        pytest.param((INTENT, SPAWNING, STARTED), REUSED, GONE_UNSEEN, id="the pid was reused"),
        pytest.param((INTENT, SPAWNING, STARTED), ZOMBIE, GONE_UNSEEN, id="dead, not reaped"),
    ],
)
def test_in_the_same_boot(records: tuple[Record, ...], stat: Stat | None, expected: str) -> None:
    ledger = a_ledger(*records)
    found = find_out(ledger, boot_id="boot", marked={}, stat_of=stats(stat), now=T0)
    if expected == "start":
        assert (found.to_start, found.adopted, found.records) == ((SERIAL,), (), ())
    elif expected == "adopt":
        assert (found.to_start, found.adopted, found.records) == ((), (SERIAL,), ())
    else:
        over = Over(SERIAL, ReportState.UNKNOWN, T0, None, None, expected)
        assert (found.to_start, found.adopted, found.records) == ((), (), (over,))


def test_a_marked_process_proves_a_start_that_was_not_written() -> None:
    ledger = a_ledger(INTENT, SPAWNING)
    found = find_out(ledger, boot_id="boot", marked={SERIAL: [PID]}, stat_of=stats(ALIVE), now=T0)
    assert found.adopted == (SERIAL,)
    assert found.records == (Started(SERIAL, PID, TICKS, T0),)


@pytest.mark.parametrize("records", [(INTENT,), (INTENT, SPAWNING), (INTENT, SPAWNING, STARTED)])
def test_another_boot_proves_everything_gone(records: tuple[Record, ...]) -> None:
    """Even if a process of that number and mark exists now: it is another one."""
    found = find_out(
        a_ledger(*records),
        boot_id="another",
        marked={SERIAL: [PID]},
        stat_of=stats(ALIVE),
        now=T0,
    )
    assert found.records == (Over(SERIAL, ReportState.ENDED, T0, None, None, RESTARTED),)
    assert (found.adopted, found.to_start) == ((), ())


def test_an_exit_code_that_was_seen_is_kept_when_only_children_were_left() -> None:
    ledger = a_ledger(INTENT, SPAWNING, STARTED, MainEnded(SERIAL, 3, None))
    found = find_out(ledger, boot_id="boot", marked={}, stat_of=stats(None), now=T0)
    assert found.records == (Over(SERIAL, ReportState.ENDED, T0, 3, None, ""),)


def test_a_ledger_made_of_its_snapshot_is_the_same() -> None:
    ledger = a_ledger(
        Intended(SERIAL, tuple(an_order(index) for index in range(4))),
        SPAWNING,
        STARTED,
        Over(SERIAL, ReportState.ENDED, T0, 0, None, ""),
        StopAsked(TaskId("uid", 9, 1), 1.0, T0, SERIAL + 10),
        Forgot((TaskId("uid", 0, 1),)),
    )
    again = Ledger()
    for record in ledger.snapshot():
        again.apply(record)
    assert again.reports() == ledger.reports()
    assert again.forgotten == ledger.forgotten
    assert (again.base, again.next_serial) == (ledger.base, ledger.next_serial)
    assert list(again.open) == list(ledger.open)


@pytest.mark.parametrize("attempt", [0, 1])
@pytest.mark.parametrize("is_stop", [False, True], ids=["launched again", "asked about"])
def test_how_a_forgotten_attempt_ended_is_told_to_whoever_comes_back(
    attempt: int, is_stop: bool
) -> None:
    """Also from a rewritten journal. Those before the newest failed; more is not known of them."""
    before = a_ledger(INTENT, SPAWNING, STARTED, Over(SERIAL, ReportState.ENDED, T0, 3, None, ""))
    before.apply(Forgot((TaskId("uid", 0, 1),)))
    ledger = Ledger()
    for record in before.snapshot():
        ledger.apply(record)
    task = TaskId("uid", 0, attempt)
    ledger.apply(
        StopAsked(task, 0.0, T0, SERIAL + 1)
        if is_stop
        else Intended(SERIAL + 1, (an_order(attempt=attempt),))
    )

    report = report_of(ledger.entries[task])
    assert (report.state, ledger.open) == (ReportState.ENDED, {})
    if attempt == 1:
        assert (report.exit_code, report.ended_at, report.stopped) == (3, T0, False)
    else:
        assert (report.exit_code, report.stopped) == (None, False)


def test_a_forgotten_attempt_is_over_however_often_it_is_ordered() -> None:
    ledger = a_ledger(INTENT, SPAWNING, STARTED, Over(SERIAL, ReportState.ENDED, T0, 0, None, ""))
    ledger.apply(Forgot((TaskId("uid", 0, 1),)))
    assert ledger.reports() == ()
    ledger.apply(Intended(SERIAL + 1, (an_order(),)))
    assert report_of(ledger.entries[TaskId("uid", 0, 1)]).state is ReportState.ENDED
    assert not ledger.open
    ledger.apply(Intended(SERIAL + 2, (an_order(attempt=2),)))
    assert list(ledger.open) == [SERIAL + 2]
