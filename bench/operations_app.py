"""The application of `python -m bench operations`: steps that return at once."""

from __future__ import annotations

import time

from interlock import App, Context

app = App()


@app.step()
def add(ctx: Context, number: int) -> int:  # noqa: ARG001 - steps get one
    """Do next to nothing."""
    return number + 1


@app.step()
def moment(ctx: Context) -> int:  # noqa: ARG001 - steps get one
    """Tell when it began, in nanoseconds."""
    return time.time_ns()


@app.operation()
def elaborated(number: int, steps: int) -> int:
    """So many steps, each with what the one before it returned."""
    for _ in range(steps):
        number = add(number)
    return number


@app.operation()
def single(ctx: Context, number: int) -> int:  # noqa: ARG001 - this makes it a step
    """An operation that is its only step."""
    return number + 1


@app.operation()
def first_moment() -> int:
    """An operation that is turned into steps first."""
    return moment()
