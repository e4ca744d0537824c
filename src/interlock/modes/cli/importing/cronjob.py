"""Kubernetes CronJobs, as JobConfigs of batch Jobs."""

from __future__ import annotations

from typing import Any

from interlock.modes.cli.importing.drafts import Draft, quoted
from interlock.modes.cli.importing.fields import Fields, definitions
from interlock.modes.cli.importing.lines import (
    is_every,
    line_for_every,
    split_zone,
    with_short_steps,
)
from interlock.modes.cli.importing.templates import batch_template, metadata_of

API_VERSIONS = ("batch/v1", "batch/v1beta1")
#: Without a deadline a CronJob runs what it missed last, however long ago that was.
LONG_AGO = "365d"
#: What is late by less is on time, unless `missedAfter` says otherwise.
_ON_TIME_S = 60
_POLICIES = ("Allow", "Forbid", "Replace")


def import_cronjobs(draft: Draft, source: bytes) -> None:
    """Take every CronJob of a file.

    Raises:
        BadSourceError: The file is none of CronJobs.
    """
    found = definitions(draft, source, "CronJob", API_VERSIONS)
    without_zone = [given for given in found if not _import(draft, given)]
    if without_zone and not draft.wishes.timezone:
        count = len(without_zone)
        told = "1 CronJob names" if count == 1 else f"{count} CronJobs name"
        draft.note(
            without_zone[0].line_of("spec"),
            "spec.timeZone",
            f"{told} no zone",
            "Kubernetes takes the zone of its controller manager, which the file does not tell",
            "UTC, which it nearly always is; --timezone names another",
        )


def _import(draft: Draft, given: Fields) -> bool:
    """Take one CronJob; returns whether it names its zone."""
    spec = given.within("spec")
    given.require("spec", spec.data)
    metadata = metadata_of(given)
    old = given.within("metadata").text("name") or "cronjob"
    where = f"CronJob {old}"
    given.pass_over("apiVersion", "kind", "status")
    given.tell_rest()
    name = draft.name_for("JobConfig", old, metadata.get("namespace", ""))
    if not draft.wishes.prefix and name != old:
        why = f"a JobConfig's name has at most 41 characters, and no dots: {quoted(old)}"
        given.within("metadata").note("name", "is another one", why, f"it is called {name}")
    schedule, is_zoned = _schedule(spec)
    if schedule is None:
        draft.leave_out(spec.line_of("schedule"), where, "its schedule cannot be kept to")
        return is_zoned
    made: dict[str, Any] = {"schedules": [schedule]}
    made["concurrency"] = {"policy": _policy(spec)}
    made["catchUp"] = _catch_up(spec)
    made["history"] = _history(spec)
    if spec.flag("suspend"):
        made["suspend"] = True
    made["template"] = batch_template(spec.within("jobTemplate"))
    spec.tell_rest()
    draft.add(given.line_of(), where, "JobConfig", name, metadata=metadata, spec=made)
    return is_zoned


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
    named = zone or zoned.zone
    made = {"cron": line, "timezone": named or spec.draft.zone}
    return {**made, "onGap": "Skip", "onRepeat": "Both"}, bool(named)


def _policy(spec: Fields) -> str:
    policy = spec.text("concurrencyPolicy") or "Allow"
    if policy not in _POLICIES:
        why = f"Kubernetes knows {', '.join(_POLICIES)}"
        spec.note("concurrencyPolicy", f"{quoted(policy)} is not known", why, "Forbid")
        return "Forbid"
    if policy == "Forbid":
        why = (
            "Kubernetes starts what came due while a Job ran once that Job has ended, late"
            " and once; to us Forbid means that it does not run"
        )
        instead = "such a due time is recorded as skipped; policy Enqueue with maxQueued 1 runs it"
        spec.note("concurrencyPolicy", "Forbid is stricter", why, instead)
    return policy


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
