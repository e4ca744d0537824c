"""What is a scenario made of: work that means the same everywhere, and steps that wait for it.

No step relies on time. A step that waits does so for a state that lasts until the next step, so
that both modes are found in it, however fast each of them got there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

#: A Job as an API tells it.
Object = dict[str, Any]

LONG_AGO = "2020-01-01T00:00:00Z"
FAR_AWAY = "2999-01-01T00:00:00Z"
ENDS = ("Succeeded", "Failed", "Killed", "Refused", "FinishedUnknown")


# What a task does


class Exits(Struct, frozen=True):
    """Work that ends by itself; the code may be made of variables, as all texts of a Job."""

    code: int | str = 0
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class Waits(Struct, frozen=True):
    """Work that runs until `let_go` tells it the code to exit with; it obeys SIGTERM."""


class IgnoresStop(Struct, frozen=True):
    """Work that only SIGKILL ends."""


class CannotStart(Struct, frozen=True):
    """Work that is refused by whoever should start it, at once."""


class Nothing(Struct, frozen=True):
    """No work at all: the Job is over as soon as it may start."""


Work = Exits | Waits | IgnoresStop | CannotStart | Nothing


# What is waited for


class Condition(Struct, frozen=True):
    """Something that is true of a Job, and stays true until the next step."""

    words: str
    #: Told the Job, or None when there is none.
    holds: Callable[[Object | None], bool]


#: A task in its first attempt, or a task and the number of its attempt.
Attempt = int | tuple[int, int]


def running(*attempts: Attempt) -> Condition:
    """Exactly these attempts are under way, and all of them run; task 0 when none is named."""
    wanted = _numbers(attempts or (0,))

    def holds(job: Object | None) -> bool:
        active = _part(job, "execution").get("active", ())
        return _numbers_of(active) == wanted and all(one["state"] == "Running" for one in active)

    return Condition(f"running {wanted}", holds)


def in_phase(*phases: str) -> Condition:
    """The Job is in one of these phases."""

    def holds(job: Object | None) -> bool:
        return job is not None and job.get("status", {}).get("phase") in phases

    return Condition(" or ".join(phases), holds)


def waiting(*reasons: str) -> Condition:
    """The Job waits for exactly these things, each told as a reason or `reason key`."""

    def holds(job: Object | None) -> bool:
        waits = _part(job, "admission").get("waits", ())
        told = (f"{wait['reason']} {wait.get('key', '')}".rstrip() for wait in waits)
        return sorted(told) == sorted(reasons)

    return Condition(f"waiting for {', '.join(reasons)}", holds)


def ended(*attempts: Attempt) -> Condition:
    """Exactly these attempts are over."""
    wanted = _numbers(attempts)

    def holds(job: Object | None) -> bool:
        return _numbers_of(_part(job, "execution").get("ended", ())) == wanted

    return Condition(f"with {wanted} ended", holds)


OVER = Condition("over", in_phase(*ENDS).holds)
GONE = Condition("gone", lambda job: job is None)


def _part(job: Object | None, part: str) -> Object:
    found: Object = {} if job is None else job.get("status", {}).get(part, {})
    return found


def _numbers(attempts: Iterable[Attempt]) -> list[tuple[int, int]]:
    return sorted((one, 0) if isinstance(one, int) else one for one in attempts)


def _numbers_of(attempts: Iterable[Object]) -> list[tuple[int, int]]:
    return sorted((one["index"], one["attempt"]) for one in attempts)


# What is done


class Create(Struct, frozen=True):
    """Create a Job that does some work."""

    job: str
    work: Work
    spec: Object


class Until(Struct, frozen=True):
    """Wait until something is true of a Job; all that is told of it then is compared."""

    job: str
    condition: Condition


class LetGo(Struct, frozen=True):
    """Tell an attempt that waits to exit with a code."""

    job: str
    code: int
    task: int
    attempt: int


class Change(Struct, frozen=True):
    """Change a Job's specification; None takes a field away."""

    job: str
    spec: Object


class Delete(Struct, frozen=True):
    """Delete a Job; it goes when nothing of it runs."""

    job: str


class Requeue(Struct, frozen=True):
    """Have a Job wait again that was let in; `round` is how often that was done before."""

    job: str
    round: int


class Receive(Struct, frozen=True):
    """Tell the arguments and variables with which an attempt was started."""

    job: str
    task: int
    attempt: int


Step = Create | Until | LetGo | Change | Delete | Requeue | Receive


def create(job: str, work: Work, **spec: Any) -> Create:
    """Create a Job; `spec` adds to what its work needs. Lock keys are the scenario's own."""
    return Create(job, work, spec)


def until(job: str, condition: Condition) -> Until:
    """Wait until it is so."""
    return Until(job, condition)


def let_go(job: str, code: int = 0, *, task: int = 0, attempt: int = 0) -> LetGo:
    """Let a waiting attempt end."""
    return LetGo(job, code, task, attempt)


def change(job: str, **spec: Any) -> Change:
    """Change fields of the specification."""
    return Change(job, spec)


def kill(job: str, **spec: Any) -> Change:
    """Tell a Job to stop now."""
    return Change(job, {"killAt": LONG_AGO, **spec})


def suspend(job: str) -> Change:
    """Let a Job start nothing more."""
    return Change(job, {"suspend": True})


def resume(job: str) -> Change:
    """Let a Job go on."""
    return Change(job, {"suspend": False})


def delete(job: str) -> Delete:
    """Ask for a Job to be gone."""
    return Delete(job)


def requeue(job: str, *, round: int = 0) -> Requeue:
    """Put a Job back."""
    return Requeue(job, round)


def receive(job: str, *, task: int = 0, attempt: int = 0) -> Receive:
    """Look at what an attempt was given."""
    return Receive(job, task, attempt)


def lock(key: str, **request: Any) -> Object:
    """A lock that a Job asks for."""
    return {"key": key, **request}


class Scenario(Struct, frozen=True):
    """A story that both modes must tell alike. It ends when all its Jobs are over or gone."""

    #: Short: it is part of the names of its Jobs.
    name: str
    steps: tuple[Step, ...]


def scenario(name: str, *steps: Step) -> Scenario:
    """Put a scenario together."""
    return Scenario(name, steps)
