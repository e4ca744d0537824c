"""How Jobs are stopped, run out of time, and go."""

from __future__ import annotations

from interlock.testing.differential.scenario import (
    GONE,
    LONG_AGO,
    OVER,
    Exits,
    IgnoresStop,
    Waits,
    change,
    create,
    delete,
    in_phase,
    kill,
    lock,
    running,
    scenario,
    until,
    waiting,
)

_DB = [lock("db")]

STOPPING = (
    scenario("kill-running", create("a", Waits()), until("a", running()), kill("a")),
    scenario(
        "kill-what-ignores-it",
        create("a", IgnoresStop(), gracePeriod="1s"),
        until("a", running()),
        kill("a"),
    ),
    scenario(
        "less-grace",
        create("a", IgnoresStop(), gracePeriod="1000h"),
        until("a", running()),
        kill("a"),
        until("a", in_phase("Killing")),
        change("a", gracePeriod="1s"),
    ),
    scenario(
        "kill-many",
        create("a", Waits(), parallelism={"count": 3}, retries={"limit": 4}),
        until("a", running(0, 1, 2)),
        kill("a"),
    ),
    scenario(
        "kill-before-start",
        create("a", Waits(), suspend=True),
        until("a", waiting("Suspended")),
        kill("a"),
    ),
    scenario("killed-from-the-beginning", create("a", Exits(0), killAt=LONG_AGO)),
    scenario(
        "delete-running",
        create("a", Waits(), locks=_DB),
        until("a", running()),
        create("b", Exits(0), locks=_DB),
        until("b", waiting("LockTaken db")),
        delete("a"),
        until("a", GONE),
    ),
    scenario(
        "delete-what-ignores-it",
        create("a", IgnoresStop(), gracePeriod="1s"),
        until("a", running()),
        delete("a"),
        until("a", GONE),
    ),
    scenario(
        "delete-waiting",
        create("a", Waits(), suspend=True),
        until("a", waiting("Suspended")),
        delete("a"),
        until("a", GONE),
    ),
    scenario(
        "delete-ended", create("a", Exits(0)), until("a", OVER), delete("a"), until("a", GONE)
    ),
    scenario("gone-when-over", create("a", Exits(0), ttlAfterFinished="0s"), until("a", GONE)),
    scenario(
        "timeout",
        create("a", Waits(), retries={"limit": 3}),
        until("a", running()),
        change("a", timeout="1s"),
    ),
    scenario(
        "task-timeout",
        create("a", Waits(), taskTimeout="1s", retries={"limit": 1}),
    ),
    scenario(
        "task-timeout-ignored",
        create("a", IgnoresStop(), gracePeriod="1s"),
        until("a", running()),
        change("a", taskTimeout="1s"),
    ),
)
