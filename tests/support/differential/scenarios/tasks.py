"""What the tasks of a Job do, are given, and do again."""

from __future__ import annotations

from support.differential.scenario import (
    OVER,
    CannotStart,
    Exits,
    Nothing,
    Waits,
    create,
    ended,
    in_phase,
    kill,
    let_go,
    lock,
    receive,
    running,
    scenario,
    until,
    waiting,
)

_DB = [lock("db")]

SINGLE = (
    scenario("success", create("a", Exits(0))),
    scenario("failure", create("a", Exits(1))),
    scenario("exit-codes", *(create(f"with-{code}", Exits(code)) for code in (2, 42, 255))),
    scenario("exits-when-told", create("a", Waits()), until("a", running()), let_go("a", 7)),
    scenario("cannot-start", create("a", CannotStart())),
    scenario("nothing-to-run", create("a", Nothing(), locks=_DB)),
    scenario("nothing-for-many", create("a", Nothing(), parallelism={"count": 30})),
    scenario(
        "written-otherwise",
        create("a", Exits(0), gracePeriod="90s", timeout="60m", title="", args={}),
    ),
    scenario(
        "variables",
        create(
            "a",
            Exits(
                0,
                args=("${job.name}", "${args.who}", "${option.region}", "$${HOME}", "${HOME}"),
                env={"TASK": "${task.name} of ${job.max_attempts}", "WHO": "${args.who}"},
            ),
            args={"who": 'it\'s "me" & ${task.name}'},
            substitutions={"option.region": "north"},
            retries={"limit": 2},
            locks=[lock("db"), lock("disk", limit=3)],
        ),
        until("a", OVER),
        receive("a"),
    ),
)

RETRIES = (
    scenario(
        "retry-succeeds",
        create("a", Waits(), retries={"limit": 2}),
        until("a", running()),
        let_go("a", 1),
        until("a", running((0, 1))),
        let_go("a", 0, attempt=1),
    ),
    scenario("retries-exhausted", create("a", Exits(3), retries={"limit": 3})),
    scenario("fail-exit-code", create("a", Exits(4), retries={"limit": 3, "failExitCodes": [4]})),
    scenario(
        "retry-exit-codes",
        create("a", Waits(), retries={"limit": 5, "retryExitCodes": [75]}),
        until("a", running()),
        let_go("a", 75),
        until("a", running((0, 1))),
        let_go("a", 1, attempt=1),
    ),
    scenario(
        "killed-in-backoff",
        create("a", Exits(1), retries={"limit": 1, "delay": "1000h"}, locks=_DB),
        until("a", in_phase("RetryBackoff")),
        create("b", Exits(0), locks=_DB),
        until("b", waiting("LockTaken db")),
        kill("a"),
    ),
    scenario("cannot-start-again", create("a", CannotStart(), retries={"limit": 2})),
    scenario(
        "one-of-many-again",
        create("a", Waits(), parallelism={"count": 3}, retries={"limit": 1}),
        until("a", running(0, 1, 2)),
        let_go("a", 1, task=1),
        until("a", running(0, (1, 1), 2)),
        let_go("a", 0, task=0),
        let_go("a", 0, task=1, attempt=1),
        let_go("a", 0, task=2),
    ),
)

PARALLEL = (
    scenario("count", create("a", Exits(0), parallelism={"count": 4})),
    scenario(
        "keys",
        create("a", Exits(0, args=("${task.key}",)), parallelism={"keys": ["north", "south"]}),
        until("a", OVER),
        receive("a", task=0),
        receive("a", task=1),
    ),
    scenario(
        "matrix",
        create(
            "a",
            Exits(0, args=("${task.matrix.os}/${task.matrix.cpu}",)),
            parallelism={"matrix": {"os": ["linux", "plan9"], "cpu": ["arm", "mips"]}},
        ),
        until("a", OVER),
        *(receive("a", task=task) for task in range(4)),
    ),
    scenario(
        "one-fails-all",
        create("a", Waits(), parallelism={"count": 3}),
        until("a", running(0, 1, 2)),
        let_go("a", 9, task=1),
    ),
    scenario(
        "any-is-enough",
        create("a", Waits(), parallelism={"count": 3}, completion="AnySuccessful"),
        until("a", running(0, 1, 2)),
        let_go("a", 0, task=2),
    ),
    scenario(
        "any-survives-failures",
        create("a", Waits(), parallelism={"count": 3}, completion="AnySuccessful"),
        until("a", running(0, 1, 2)),
        let_go("a", 1, task=0),
        until("a", ended(0)),
        let_go("a", 2, task=1),
        until("a", ended(0, 1)),
        let_go("a", 0, task=2),
    ),
    scenario(
        "none-succeeds",
        create("a", Waits(), parallelism={"count": 2}, completion="AnySuccessful"),
        until("a", running(0, 1)),
        let_go("a", 11, task=1),
        until("a", ended(1)),
        let_go("a", 10, task=0),
    ),
    scenario(
        "codes-of-tasks",
        create(
            "a",
            Exits("${task.index}"),
            parallelism={"count": 3, "atOnce": 1},
            completion="AnySuccessful",
        ),
        create("b", Exits("1${task.index}"), parallelism={"count": 3, "atOnce": 1}),
    ),
    scenario(
        "at-once",
        create("a", Waits(), parallelism={"count": 3, "atOnce": 1}),
        until("a", running(0)),
        let_go("a", task=0),
        until("a", running(1)),
        let_go("a", task=1),
        until("a", running(2)),
        let_go("a", task=2),
    ),
)
