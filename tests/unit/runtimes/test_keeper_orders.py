"""A keeper and its journal outlive versions: what is sent and kept is what they always read."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.resources.process import EnvFile, ProcessLimits
from interlock.resources.tasks import TaskOrder
from interlock.resources.work import ProcessWork
from interlock.runtimes.keeper.orders import process_order
from interlock.runtimes.keeper.protocol import Launch, frame
from interlock.runtimes.keeper.records import Intended, decode_record, encode_record

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


def test_a_keeper_of_the_version_before_is_sent_what_it_reads() -> None:
    sent = frame(Launch(3, (process_order(ORDER, WORK),)))

    assert msgspec.msgpack.decode(sent[4:]) == {"type": "launch", "seq": 3, "orders": [FLAT]}


def test_a_journal_of_the_version_before_is_read() -> None:
    kept = b"F" + msgspec.msgpack.encode(["intended", 4, [FLAT]])

    assert decode_record(kept) == Intended(4, (process_order(ORDER, WORK),))


def test_a_journal_that_is_kept_now_is_read_by_the_version_before() -> None:
    kept = encode_record(Intended(4, (process_order(ORDER, WORK),)))

    assert msgspec.msgpack.decode(kept[1:]) == ["intended", 4, [FLAT]]
