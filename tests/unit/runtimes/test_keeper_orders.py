"""A keeper and its journal outlive versions: what is sent and kept is what they always read."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.resources.process import EnvFile, FileProbe, ProcessLimits, ReadinessProbe
from interlock.resources.tasks import ReportState, TaskOrder
from interlock.resources.values.durations import Duration
from interlock.resources.work import ProcessWork
from interlock.runtimes.keeper.ledger import Ledger, report_of
from interlock.runtimes.keeper.orders import process_order
from interlock.runtimes.keeper.protocol import Frames, Launch, Request, frame
from interlock.runtimes.keeper.records import (
    Intended,
    Over,
    Started,
    decode_record,
    encode_record,
)
from interlock.testing.builders import T0

WORK = ProcessWork(
    command=("sh", "-c", "true"),
    env={"A": "mine", "INTERLOCK_JOB": "forged"},
    env_from=(EnvFile(file="a.env"),),
    working_dir="/srv",
    stdin="words",
    user="nobody",
    group="users",
    limits=ProcessLimits(nice=5),
)
ORDER = TaskOrder(
    job_uid="uid",
    index=2,
    attempt=1,
    name="job-2-1",
    namespace="default",
    job="job",
    work=WORK,
    env={"INTERLOCK_JOB": "job"},
    job_version=7,
)
#: The order as every keeper so far reads it: any other field would be refused.
FLAT: dict[str, Any] = {
    "jobUid": "uid",
    "index": 2,
    "attempt": 1,
    "name": "job-2-1",
    "namespace": "default",
    "job": "job",
    "command": ["sh", "-c", "true"],
    "env": {"A": "mine", "INTERLOCK_JOB": "job"},
    "envFrom": [{"file": "a.env"}],
    "workingDir": "/srv",
    "stdin": "words",
    "user": "nobody",
    "group": "users",
    "limits": {"nice": 5},
    "jobVersion": 7,
}


class IntendedBefore(msgspec.Struct, array_like=True, tag="intended"):
    """The record as keepers before probes read it."""

    first_serial: int
    orders: list[dict[str, Any]]


def test_a_keeper_of_the_version_before_is_sent_what_it_reads() -> None:
    sent = frame(Launch(3, (process_order(ORDER, WORK),)))

    assert msgspec.msgpack.decode(sent[4:]) == {"type": "launch", "seq": 3, "orders": [FLAT]}


def test_a_journal_of_the_version_before_is_read() -> None:
    kept = b"F" + msgspec.msgpack.encode(["intended", 4, [FLAT]])

    assert decode_record(kept) == Intended(4, (process_order(ORDER, WORK),))


def test_a_journal_that_is_kept_now_is_read_by_the_version_before() -> None:
    kept = encode_record(Intended(4, (process_order(ORDER, WORK),)))

    # What stands behind the orders it passes over.
    assert msgspec.msgpack.decode(kept[1:])[:3] == ["intended", 4, [FLAT]]
    assert msgspec.msgpack.decode(kept[1:], type=IntendedBefore).orders == [FLAT]


def test_probes_stand_beside_the_orders() -> None:
    probe = ReadinessProbe(file=FileProbe(path="up"), period=Duration(seconds=5))
    order = process_order(ORDER, WORK)

    kept = encode_record(Intended(4, (order, order), {1: probe}))
    sent = frame(Launch(3, (order, order), {1: probe}))

    assert decode_record(kept) == Intended(4, (order, order), {1: probe})
    assert msgspec.msgpack.decode(kept[1:], type=IntendedBefore).orders == [FLAT, FLAT]
    (heard,) = Frames(Request).feed(sent)
    assert heard == Launch(3, (order, order), {1: probe})


def test_an_attempt_keeps_its_probe_until_it_is_over() -> None:
    probe = ReadinessProbe(file=FileProbe(path="up"))
    ledger = Ledger()
    ledger.apply(Intended(4, (process_order(ORDER, WORK),), {0: probe}))
    (entry,) = ledger.entries.values()
    assert report_of(entry).ready is None

    ledger.apply(Started(4, 100, 0, T0))
    assert (report_of(entry).ready, report_of(entry).ready_at) == (False, T0)
    entry.message, entry.why_not = "found again", "readiness probe: no answer"
    assert report_of(entry).message == "found again; readiness probe: no answer"
    entry.ready = True
    assert report_of(entry).message == "found again"
    # It is written a second time once its start time is known.
    ledger.apply(Started(4, 100, 77, T0))
    assert (entry.ready, entry.probe, entry.order) == (True, probe, process_order(ORDER, WORK))
    again = Ledger()
    for record in map(decode_record, map(encode_record, ledger.snapshot())):
        again.apply(record)
    assert again.entries == ledger.entries

    ledger.apply(Over(4, ReportState.ENDED, T0, 0, None, ""))
    over = ledger.entries[ORDER.id]
    assert report_of(over).ready is None
    assert over.probe is None
    assert over.order is None
