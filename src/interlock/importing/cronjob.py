"""Kubernetes CronJobs, as JobConfigs of batch Jobs."""

from __future__ import annotations

from typing import Any

from interlock.importing.cron_lines import (
    is_due_within,
    is_every,
    is_never_due,
    is_read,
    line_for_every,
    split_zone,
    with_short_steps,
)
from interlock.importing.drafts import LONGEST, Draft, quoted
from interlock.importing.fields import Fields, take_each
from interlock.importing.robfig import why_refused
from interlock.importing.templates import batch_template, metadata_of, template_paths

API_VERSIONS = ("batch/v1", "batch/v1beta1")
#: Without a deadline a CronJob runs what it missed last, however long ago that was.
LONG_AGO = "365d"
#: What is late by less is on time, unless `missedAfter` says otherwise.
_ON_TIME_S = 60
#: What our fields are called there.
_PATHS = (
    (r"spec\.schedules\[0\]\.timezone", "spec.timeZone"),
    (r"spec\.schedules\[0\](?:\.cron)?", "spec.schedule"),
    (r"spec\.catchUp\.[A-Za-z]+", "spec.startingDeadlineSeconds"),
    (r"spec\.concurrency\.policy", "spec.concurrencyPolicy"),
    (r"spec\.history\.succeeded", "spec.successfulJobsHistoryLimit"),
    (r"spec\.history\.failed", "spec.failedJobsHistoryLimit"),
    *template_paths(r"spec\.template"),
)
_POLICIES = ("Allow", "Forbid", "Replace")


def import_cronjobs(draft: Draft, source: bytes) -> None:
    """Take every CronJob of a file.

    Raises:
        BadSourceError: The file is none of CronJobs.
    """
    take_each(draft, source, "CronJob", API_VERSIONS, _import)
    if (count := draft.without_zone) and not draft.wishes.timezone:
        told = "1 CronJob names" if count == 1 else f"{count} CronJobs name"
        draft.note(
            0,
            "spec.timeZone",
            f"{told} no zone",
            "Kubernetes takes the zone of its controller manager, which the file does not tell",
            "UTC, which it nearly always is; --timezone names another",
        )


def _import(draft: Draft, given: Fields) -> None:
    spec = given.within("spec")
    given.require("spec", spec.data)
    metadata = metadata_of(given)
    old = given.within("metadata").text("name") or "cronjob"
    where = f"CronJob {old}"
    given.pass_over("apiVersion", "kind", "status")
    given.tell_rest()
    name = draft.name_for("JobConfig", old, metadata.get("namespace", ""))
    if not draft.wishes.prefix and name != old:
        longest = LONGEST["JobConfig"]
        why = f"a JobConfig's name has at most {longest} characters, and no dots: {quoted(old)}"
        given.within("metadata").note("name", "is another one", why, f"it is called {name}")
    schedule, is_zoned = _schedule(spec)
    if schedule is None:
        draft.leave_out(spec.line_of("schedule"), where, "its schedule cannot be kept to")
        return
    catch_up = _catch_up(spec)
    made: dict[str, Any] = {"schedules": [schedule]}
    made["concurrency"] = _concurrency(spec, schedule["cron"])
    made["catchUp"] = catch_up
    if is_never_due(schedule["cron"]):
        why = "it names days that no month has"
        by_hand = draft.by_hand(name, metadata.get("namespace", ""))
        instead = f"a JobConfig without schedules: {by_hand} runs it by hand"
        spec.note("schedule", f"{quoted(schedule['cron'])} is never due", why, instead)
        del made["schedules"], made["catchUp"]
        is_zoned = True
    made["history"] = _history(spec)
    if spec.flag("suspend"):
        made["suspend"] = True
    made["template"] = batch_template(spec.within("jobTemplate"))
    spec.tell_rest()
    draft.add(
        *(given.line_of(), where, "JobConfig", name),
        paths=_PATHS,
        is_zoned=is_zoned,
        metadata=metadata,
        spec=made,
    )


def _schedule(spec: Fields) -> tuple[dict[str, Any] | None, bool]:
    text = spec.text("schedule")
    spec.require("schedule", text)
    zone = spec.text("timeZone")
    zoned = split_zone(text or "")
    if zone and zoned.zone is not None:
        why = "with spec.timeZone beside it Kubernetes cannot read such a line, and never runs it"
        spec.note("schedule", f"{quoted(text or '')} has a zone of its own", why, "see below")
        return None, True
    line: str | None = with_short_steps(zoned.line)
    if is_every(zoned.line):
        line = line_for_every(zoned.line)
        if line is None:
            why = "it is counted from the last run, and no line by the clock is due as often"
            spec.note("schedule", f"{quoted(zoned.line)} is not carried over", why, "see below")
            return None, True
        why = "Kubernetes counts it from the last run, we go by the clock"
        spec.note("schedule", f"{quoted(zoned.line)} is due at other minutes", why, f'"{line}"')
    elif (refused := why_refused(zoned.line)) and is_read(zoned.line):
        why = f"Kubernetes refuses such a line ({refused}), and never ran it"
        spec.note("schedule", f"{quoted(zoned.line)} comes to life", why, "it is run by Interlock")
    named = zone or zoned.zone
    made = {"cron": line, "timezone": named or spec.draft.zone}
    return {**made, "onGap": "Skip", "onRepeat": "Both"}, bool(named)


def _concurrency(spec: Fields, line: str) -> dict[str, Any]:
    """What becomes of what is due while a Job runs.

    To Kubernetes' Forbid that is one late run, right after the Job has ended, unless the deadline
    of the newest due time is over by then. So it is ours to have one wait in line, where the
    deadline is no shorter than any time between two due times. Where it is shorter, Forbid starts
    nothing beyond the deadline, and now and then something less than Kubernetes would.
    """
    policy = spec.text("concurrencyPolicy") or "Allow"
    if policy not in _POLICIES:
        why = f"Kubernetes knows {', '.join(_POLICIES)}"
        spec.note("concurrencyPolicy", f"{quoted(policy)} is not known", why, "Forbid")
        return {"policy": "Forbid"}
    if policy != "Forbid":
        return {"policy": policy}
    deadline = spec.number("startingDeadlineSeconds")
    if deadline is None or is_due_within(line, deadline):
        return {"policy": "Enqueue", "maxQueued": 1}
    why = (
        "Kubernetes starts what came due while a Job ran when that Job has ended, if no more than"
        f" {deadline} s have passed; to us Forbid means that it does not run"
    )
    instead = "such a due time is recorded as skipped; policy Enqueue with maxQueued 1 runs it"
    spec.note("concurrencyPolicy", "Forbid is stricter", why, instead)
    return {"policy": policy}


def _catch_up(spec: Fields) -> dict[str, Any]:
    deadline = spec.number("startingDeadlineSeconds")
    if deadline is None:
        return {"policy": "OnlyNewest", "notOlderThan": LONG_AGO}
    if deadline == 0:
        why = "a CronJob with 0 is never on time"
        spec.note("startingDeadlineSeconds", "0 is not carried over", why, "1s")
    seconds = max(deadline, 1)
    catch_up = {"policy": "OnlyNewest", "notOlderThan": f"{seconds}s"}
    if seconds < _ON_TIME_S:
        # Kubernetes starts nothing after the deadline, however short it is.
        catch_up["missedAfter"] = f"{seconds}s"
    return catch_up


def _history(spec: Fields) -> dict[str, int]:
    succeeded = spec.number("successfulJobsHistoryLimit")
    failed = spec.number("failedJobsHistoryLimit")
    return {
        "succeeded": 3 if succeeded is None else succeeded,
        "failed": 1 if failed is None else failed,
    }
