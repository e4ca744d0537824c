"""Outcomes of Jobs: in words, and as exit codes."""

from __future__ import annotations

from typing import Any

from interlock.client.errors import FAILED, KILLED, NEVER_RAN, OK
from interlock.client.moments import between, day_and_time

ENDS = frozenset({"Succeeded", "Failed", "Killed", "Refused", "FinishedUnknown"})
Job = dict[str, Any]


def phase_of(job: Job) -> str:
    """Where the Job is in its life."""
    return str((job.get("status") or {}).get("phase") or "Queued")


def has_ended(job: Job) -> bool:
    """Whether the Job is over for good."""
    return phase_of(job) in ENDS


def way_out(job: Job) -> str:
    """What a person can do about a Job that nobody else ends; empty for any other."""
    name = job["metadata"]["name"]
    if phase_of(job) == "Unknown":
        return f"if it is surely gone: interlock release {name} --reason …"
    if phase_of(job) == "Stuck":
        return f"see to it, then: interlock op roll-back | resolve | remove {name} --reason …"
    return ""


def has_started(job: Job) -> bool:
    """Whether the Job was let in, over or not."""
    return bool(execution_of(job).get("startedAt"))


def is_ready(job: Job) -> bool:
    """Whether as many tasks can work as may at a time; without a probe, whether it runs."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodsReady":
            return bool(condition["status"] == "True")
    return phase_of(job) == "Running"


def exit_code(job: Job) -> int:
    """The code to end with for this Job.

    A Job of one task that failed hands on its task's own exit code, or 128 and the signal.
    """
    phase = phase_of(job)
    if phase == "Succeeded":
        return OK
    if phase == "Killed":
        return KILLED
    if phase == "Refused":
        return NEVER_RAN
    return _task_code(job) or FAILED if phase == "Failed" else FAILED


def _task_code(job: Job) -> int:
    execution = execution_of(job)
    ended = execution.get("ended") or []
    if execution.get("total", 1) != 1 or not ended:
        return 0
    last = ended[-1]
    if last.get("signal"):
        return 128 + int(last["signal"])
    return int(last.get("exitCode") or 0)


def last_line(job: Job) -> str:
    """How the Job ended, for people."""
    phase, execution = phase_of(job), execution_of(job)
    took = between(execution.get("startedAt"), execution.get("endedAt"))
    why = _why(job)
    if phase == "Succeeded":
        return f"succeeded{f' in {took}' if took else ''}{_code_told(job)}"
    if phase == "Failed":
        return f"failed{f' after {took}' if took else ''}{_code_told(job)}{why}"
    if phase == "Killed":
        return f"killed{f' after {took}' if took else ' before it started'}{why}"
    if phase == "Refused":
        return f"refused{why}"
    return f"finished unknown{why}"


def _code_told(job: Job) -> str:
    execution = execution_of(job)
    if execution.get("total", 1) > 1:
        done = _count(execution.get("succeeded"))
        return f", {done} of {execution['total']} tasks succeeded"
    ended = execution.get("ended") or []
    if not ended:
        return ""
    last = ended[-1]
    if last.get("signal"):
        return f", ended by signal {last['signal']}"
    code = last.get("exitCode")
    # A Job of steps may have failed although the last of them, or its undo, ended well.
    if code is None or (phase_of(job) == "Failed" and code == 0):
        return ""
    return f", exit code {code}"


def _why(job: Job) -> str:
    status = job.get("status") or {}
    execution, admission = execution_of(job), status.get("admission") or {}
    message = execution.get("message") or admission.get("message")
    if not message and execution.get("ended"):
        message = execution["ended"][-1].get("message")
    if not message:
        reason = execution.get("reason") or admission.get("refusal") or ""
        message = "" if reason in ("TaskFailed", "Killed", "Completed") else reason
    return f": {message}" if message else ""


def waits_told(job: Job) -> str:
    """What the Job waits for, from its own status."""
    return "; ".join(_wait_told(job, wait) for wait in waits_of(job)) or "not looked at yet"


def _wait_told(job: Job, wait: dict[str, Any]) -> str:
    reason, until = wait.get("reason"), day_and_time(wait.get("until"))
    if reason == "Suspended":
        why = (job.get("spec") or {}).get("suspendReason")
        return f"suspended{f': {why}' if why else ''}"
    if reason == "NotYetDue":
        return f"not due before {until}"
    if reason == "NotInBooks":
        return "its schedule has not written it down yet"
    if reason in ("LockTaken", "GivingBack"):
        return f"lock {wait.get('key')} is taken{f' until {until}' if until else ''}"
    return str(reason)


def waits_of(job: Job) -> list[dict[str, Any]]:
    """What the Job waits for; empty before it was looked at."""
    return ((job.get("status") or {}).get("admission") or {}).get("waits") or []


def fences_told(job: Job) -> str:
    """The tokens of the locks that the Job holds."""
    grants = ((job.get("status") or {}).get("admission") or {}).get("grants") or []
    if len(grants) == 1:
        return f"fence {grants[0]['token']}"
    return ", ".join(f"fence {grant['key']}={grant['token']}" for grant in grants)


def attempts_of(job: Job) -> list[tuple[int, int]]:
    """The attempts that the status still tells of, as (task, attempt)."""
    execution = execution_of(job)
    told = [*(execution.get("ended") or []), *(execution.get("active") or [])]
    return [(int(one["index"]), int(one["attempt"])) for one in told]


def execution_of(job: Job) -> dict[str, Any]:
    """The part of the status that tells of tasks; empty before the Job starts."""
    execution: dict[str, Any] = (job.get("status") or {}).get("execution") or {}
    return execution


def _count(ranges: Any) -> int:
    """How many numbers "0-99,105" has."""
    total = 0
    for part in filter(None, str(ranges or "").split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def task_count(job: Job) -> int:
    """How many tasks a Job has, also before it starts."""
    asked = (job.get("spec") or {}).get("parallelism") or {}
    if matrix := asked.get("matrix"):
        from math import prod

        return prod(map(len, matrix.values()))
    return asked.get("count") or len(asked.get("keys") or ()) or 1
