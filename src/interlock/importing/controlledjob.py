"""ControlledJobs of batch.gresearch.co.uk, as ours."""

from __future__ import annotations

import re
from typing import Any

from interlock.importing.cron_lines import (
    first_in_gap,
    is_every,
    is_read,
    split_zone,
    with_short_steps,
)
from interlock.importing.drafts import LONGEST, Draft, quoted
from interlock.importing.fields import Fields, take_each
from interlock.importing.robfig import why_refused
from interlock.importing.templates import batch_template, metadata_of, template_paths
from interlock.timing.cron import read_cron
from interlock.timing.events import at_time_of_day
from interlock.timing.flaws import UnreadableError
from interlock.timing.walls import Line
from interlock.timing.zones import find_zone

API_VERSIONS = ("batch.gresearch.co.uk/v1",)
#: Theirs alone: what their operator writes on Jobs, and what it reads on ControlledJobs.
_OWN_PREFIX = "batch.gresearch.co.uk/"
_MUTATIONS = f"{_OWN_PREFIX}apply-mutations"
#: What our fields are called there.
_PATHS = (
    *template_paths(r"spec\.jobTemplate"),
    (r"spec\.events\[([0-9]+)\]\.cron", r"spec.events[\1].cronSchedule"),
    (r"spec\.startBy", "spec.startingDeadlineSeconds"),
)
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_RANGE = re.compile(r"([A-Z]{3})-([A-Z]{3})")


def import_controlled_jobs(draft: Draft, source: bytes) -> None:
    """Take every ControlledJob of a file.

    Raises:
        BadSourceError: The file is none of ControlledJobs.
    """
    take_each(draft, source, "ControlledJob", API_VERSIONS, _import)


def _import(draft: Draft, given: Fields) -> None:
    spec = given.within("spec")
    given.require("spec", spec.data)
    _tell_marks(given)
    metadata = metadata_of(given, _OWN_PREFIX)
    given.pass_over("apiVersion", "kind", "status")
    given.tell_rest()
    old = given.within("metadata").text("name") or "controlledjob"
    name = draft.name_for("ControlledJob", old, metadata.get("namespace", ""))
    if not draft.wishes.prefix and name != old:
        longest = LONGEST["ControlledJob"]
        why = f"a ControlledJob's name has at most {longest} characters, and no dots: {quoted(old)}"
        given.within("metadata").note("name", "is another one", why, f"it is called {name}")
    made = _timezone(spec)
    events = [event for one in spec.each("events") if (event := _event(one))]
    if events:
        made["events"] = events
        made |= {"onGap": "Skip", "onRepeat": "Both"}
        _tell_gaps(spec, events, made.get("timezone", {}))
    if deadline := spec.number("startingDeadlineSeconds"):
        made["startBy"] = f"{deadline}s"
    made |= _restarting(spec)
    if spec.flag("suspend"):
        made["suspend"] = True
    made["jobTemplate"] = batch_template(spec.within("jobTemplate"), _OWN_PREFIX)
    spec.tell_rest()
    where = f"ControlledJob {old}"
    draft.add(
        given.line_of(), where, "ControlledJob", name, paths=_PATHS, metadata=metadata, spec=made
    )


def _tell_marks(given: Fields) -> None:
    annotations = given.within("metadata").within("annotations")
    if str(annotations.raw(_MUTATIONS)).lower() == "true":
        why = "Jobs are not sent to a webhook of the operator before they are made"
        instead = "a mutating webhook of the cluster sees the batch Jobs and pods"
        annotations.note(_MUTATIONS, "is not carried over", why, instead)
    marks = given.within("spec").within("jobTemplate").within("metadata").within("annotations")
    for name in marks.data:
        if name.startswith(_OWN_PREFIX):
            why = "it is a word about one Job, and would count for every one"
            marks.note(name, "is not carried over", why, "it is left out")


def _timezone(spec: Fields) -> dict[str, Any]:
    zone = spec.within("timezone")
    name = zone.text("name") or "UTC"
    if name == "Local":
        why = "it is the zone of the machine that the operator runs on"
        instead = f"{spec.draft.zone}; --timezone names another"
        zone.note("name", '"Local" is not carried over', why, instead)
        name = spec.draft.zone
    offset = zone.raw("offset")
    made: dict[str, Any] = {"name": name}
    if isinstance(offset, int) and not isinstance(offset, bool) and offset:
        made["offset"] = offset
    elif offset not in (None, 0):
        zone.note("offset", "is not carried over", "it is no whole number", "0")
    zone.tell_rest()
    return {"timezone": made}


def _event(given: Fields) -> dict[str, Any] | None:
    made: dict[str, Any] = {"action": _action(given)}
    line = given.text("cronSchedule") or ""
    schedule = given.within("schedule")
    given.tell_rest()
    if line:
        if schedule.data:
            given.note("schedule", "is not carried over", "cronSchedule wins over it", "cron")
        return _by_line(given, made, line)
    given.require("schedule", schedule.data)
    time, days = schedule.text("timeOfDay") or "", schedule.text("daysOfWeek") or "*"
    schedule.tell_rest()
    if (match := _RANGE.fullmatch(days)) and _wraps(match[1], match[2]):
        why = "the operator refuses days that go over the end of its week, and does nothing"
        schedule.note("daysOfWeek", f"{quoted(days)} comes to life", why, "these very days")
    return {**made, "schedule": {"timeOfDay": time, "daysOfWeek": days}}


def _wraps(first: str, last: str) -> bool:
    return first in _DAYS and last in _DAYS and _DAYS.index(first) > _DAYS.index(last)


def _action(given: Fields) -> str:
    action = given.text("action")
    given.require("action", action)
    if action in ("start", "stop"):
        return str(action)
    why = "the operator takes all but start for the end of a run, and starts nothing then"
    instead = "stop, which does the same; for a restart write a stop and a start at one time"
    given.note("action", f"{quoted(action or '')} is not known", why, instead)
    return "stop"


def _by_line(given: Fields, made: dict[str, Any], text: str) -> dict[str, Any] | None:
    zoned = split_zone(text)
    if zoned.zone is not None:
        why = "spec.timezone wins over a zone in front of a line"
        given.note("cronSchedule", f"{quoted(zoned.zone)} is not carried over", why, "the same")
    if is_every(zoned.line):
        why = "the operator cannot work with it either: it crashes"
        given.note("cronSchedule", f"{quoted(text)} is not carried over", why, "it is left out")
        return None
    if (refused := why_refused(zoned.line)) and is_read(zoned.line):
        why = f"the operator refuses such a line ({refused}), and does nothing"
        given.note("cronSchedule", f"{quoted(zoned.line)} comes to life", why, "these very times")
    return {**made, "cron": with_short_steps(zoned.line)}


def _restarting(spec: Fields) -> dict[str, Any]:
    given = spec.within("restartStrategy")
    policy = given.text("specChangePolicy") or "Ignore"
    given.tell_rest()
    if policy.lower() == "recreate":
        return {"restartStrategy": {"specChangePolicy": "Recreate"}}
    if policy.lower() != "ignore":
        why = "the operator takes all but Recreate for Ignore"
        given.note("specChangePolicy", f"{quoted(policy)} is not known", why, "Ignore")
    return {}


def _tell_gaps(spec: Fields, events: list[dict[str, Any]], timezone: dict[str, Any]) -> None:
    """Tell which events the operator leaves out when clocks change, because we do so too now."""
    for event in events:
        try:
            zone = find_zone(timezone.get("name", "UTC"), timezone.get("offset", 0))
            skipped = first_in_gap(_line(event), zone, spec.draft.wishes.now)
        except UnreadableError:
            # The door tells what is wrong with it.
            continue
        if skipped:
            what = f"the {event['action']} of {skipped.wall:%Y-%m-%d %H:%M} does not happen"
            why = "clocks skip that time, and the operator leaves it out"
            instead = "the same; without onGap it happens right after the gap"
            spec.note("events", what, why, instead)


def _line(event: dict[str, Any]) -> Line:
    if "cron" in event:
        return read_cron(event["cron"], "default/controlledjob")
    schedule = event["schedule"]
    return at_time_of_day(schedule["timeOfDay"], schedule["daysOfWeek"])
