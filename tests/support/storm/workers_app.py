"""The application of a storm's workers: each step writes down what it sees and does.

It is copied into the folder of the storm, and knows nothing of Interlock but what an application
is told. A line is one write to one file, so lines of several workers never mix:
`B` when an attempt begins and `E` just before it ends, with what it came to.
"""

from __future__ import annotations

import json
import os
import select
from time import monotonic
from typing import Any

from interlock import App, Context, Retry

app = App()
EVIDENCE = "steps"


#: So often a worker may be lost; those of a storm are lost all the time.
_NO_END = 1000


def _write(kind: str, ctx: Context, number: int, **more: Any) -> None:
    told = {
        "kind": kind,
        "job": ctx.job,
        "target": ctx.target,
        "step": number,
        "undoing": ctx.undoing,
        "attempt": ctx.attempt - 1,
        "fence": ctx.fence,
        "pid": os.getpid(),
        "at": monotonic(),
        **more,
    }
    line = (json.dumps(told) + "\n").encode()
    file = os.open(EVIDENCE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line)
    os.close(file)


def _work(ctx: Context, number: int, seconds: float, given: str, *, fails: bool) -> str:
    """Be an attempt from its beginning to its end; returns what tells it from all others."""
    made = f"{ctx.job} {'undo' if ctx.undoing else 'run'} {number} {ctx.attempt - 1} {os.getpid()}"
    _write("B", ctx, number, given=given)
    select.select([], [], [], seconds)
    _write("E", ctx, number, made=made, failed=fails)
    if fails:
        raise RuntimeError(made)
    return made


@app.step(retries=Retry(limit=3, delay=0.05), undo_retries=Retry(limit=1, delay=0.05))
def act(ctx: Context, number: int, seconds: float, fails: int, undo_fails: int, given: str) -> str:
    """Fail in so many first attempts."""
    return _work(ctx, number, seconds, given, fails=ctx.attempt <= fails)


@act.undo
def take_back(
    ctx: Context, result: str | None, number: int, seconds: float, undo_fails: int
) -> str:
    """Undo it, or fail in so many first attempts."""
    return _work(ctx, number, seconds, result or "", fails=ctx.attempt <= undo_fails)


@app.step(retries=Retry(limit=3, delay=0.05), before_retry="RollBackFirst")
def redo(ctx: Context, number: int, seconds: float, fails: int, given: str) -> str:
    """Fail in so many first attempts, each of which is undone before the next."""
    return _work(ctx, number, seconds, given, fails=ctx.attempt <= fails)


@redo.undo
def clear(ctx: Context, result: str | None, number: int, seconds: float) -> str:
    """Undo it."""
    return _work(ctx, number, seconds, result or "", fails=False)


@app.operation(target="storm/{place}", max_interruptions=_NO_END)
def play(place: str, script: list[dict[str, Any]]) -> list[str]:
    """One step for each part of the script, which gets what the one before it returned."""
    made: list[str] = []
    given = ""
    for number, part in enumerate(script):
        step = redo if part.get("redo") else act
        given = step(
            number=number,
            given=given,
            **{name: value for name, value in part.items() if name != "redo"},
        )
        made.append(given)
    return made
