"""An application for tests: what it does it notes in a file, and waits where a test wants it."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock import App, Context, Retry

app = App()
_NOTES = Path("notes")


@dataclass
class Gear:
    """What a step reserves."""

    id: str
    size: str


def note(text: str) -> None:
    with _NOTES.open("a") as file:
        file.write(f"{text}\n")


@app.step(retries=Retry(limit=2, delay=0.01))
def reserve_gear(ctx: Context, size: str) -> Gear:
    assert ctx.fence > 0
    ctx.report(50, "reserving")
    ctx.log(f"attempt {ctx.attempt} of {ctx.step}")
    if ctx.attempt == 1:
        raise RuntimeError("no room yet")
    note("reserve")
    return Gear("gear-17", size)


@reserve_gear.undo
def release_gear(ctx: Context, gear: Gear | None, size: str) -> None:
    note(f"release {gear} {size}")


@app.step()
async def configure_dns(ctx: Context, application: str, gear: Gear) -> str:
    await asyncio.sleep(0)
    if application == "bad":
        raise ValueError("SERVFAIL")
    note(f"dns {gear.id}")
    return f"{application}.example"


@app.operation(target="applications/{application}", title="Create application '{application}'")
def create_application(application: str, size: str = "small") -> Any:
    gear = reserve_gear(size)
    return {"name": configure_dns(application, gear), "gear": gear}


def wait_here() -> None:
    with Path("here").open("w") as here:
        here.write(f"{os.getpid()}\n")
    with Path("go").open("rb", buffering=0) as go:
        # No more than is meant for one.
        go.read(1)


@app.step(before_retry="RollBackFirst")
def meet(ctx: Context) -> int:
    """Say that it is here, and wait until it may go on."""
    note("meet")
    wait_here()
    return os.getpid()


@meet.undo
def part(ctx: Context, pid: int | None) -> None:
    note(f"part {pid}")


@app.step()
def pid(ctx: Context) -> int:
    return os.getpid()


@app.operation(target="meetings/{place}", max_interruptions=1000)
def hold_meeting(place: str) -> Any:
    return [meet(), pid()]


@app.operation(target="pids/{name}")
def tell_pid(ctx: Context, name: str) -> int:
    return os.getpid()


@app.step(irreversible=True)
def announce(ctx: Context) -> None:
    raise RuntimeError("nobody listens")


@app.step(retries=Retry(limit=5, delay="1h"))
def knock(ctx: Context) -> None:
    raise RuntimeError("nobody opens")


@app.operation(target="rooms/{place}")
def call_in(place: str) -> None:
    announce()


@app.operation(target="rooms/{place}")
def visit(place: str) -> None:
    knock()


@app.step()
def crash(ctx: Context) -> None:
    note("crash")
    os.kill(os.getpid(), signal.SIGKILL)


@app.operation(target="rooms/{place}", max_interruptions=1)
def tear_down(place: str) -> None:
    crash()


@app.step(timeout=0.2)
def sleepwalk(ctx: Context) -> None:
    """Never look at what it is told."""
    note("sleepwalk")
    wait_here()


@app.operation(target="beds/{place}")
def sleep(place: str) -> None:
    sleepwalk()
