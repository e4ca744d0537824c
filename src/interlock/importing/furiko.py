"""Furiko's JobConfigs, as ours."""

from __future__ import annotations

from typing import Any

from interlock.importing.cron_lines import is_never_due
from interlock.importing.drafts import LONGEST, Draft, quoted
from interlock.importing.fields import Fields, take_each
from interlock.importing.furiko_jobs import job_template
from interlock.importing.furiko_lines import line_of
from interlock.importing.furiko_options import option_of
from interlock.importing.templates import metadata_of

API_VERSIONS = ("execution.furiko.io/v1alpha1",)
#: What our fields are called there.
_PATHS = (
    (r"spec\.schedules\[0\]\.cron", "spec.schedule.cron"),
    (r"spec\.schedules\[0\]\.timezone", "spec.schedule.cron.timezone"),
    (r"spec\.schedules\[0\]\.(notBefore|notAfter)", r"spec.schedule.constraints.\1"),
    (r"spec\.schedules\[0\]", "spec.schedule"),
    (r"spec\.options", "spec.option.options"),
    (r"spec\.template\.spec\.pod", "spec.template.spec.taskTemplate.pod"),
    (r"spec\.template\.spec\.retries\.limit", "spec.template.spec.maxAttempts"),
    (r"spec\.template\.spec\.retries\.delay", "spec.template.spec.retryDelaySeconds"),
    (r"spec\.template\.spec\.pendingTimeout", "spec.template.spec.taskPendingTimeoutSeconds"),
    (r"spec\.template\.spec\.ttlAfterFinished", "spec.ttlSecondsAfterFinished"),
)
_POLICIES = ("Allow", "Forbid", "Enqueue")


def import_furiko(draft: Draft, source: bytes) -> None:
    """Take every JobConfig of a file.

    Raises:
        BadSourceError: The file is none of Furiko's JobConfigs.
    """
    take_each(draft, source, "JobConfig", API_VERSIONS, _import)
    if draft.without_zone and not draft.wishes.timezone:
        draft.note(
            0,
            "spec.schedule.cron.timezone",
            "there are lines without a zone",
            "Furiko takes defaultTimezone of its configuration, which the file does not tell",
            "UTC, which is its default; --timezone names another",
        )


def _import(draft: Draft, given: Fields) -> None:
    spec = given.within("spec")
    given.require("spec", spec.data)
    metadata = metadata_of(given)
    given.pass_over("apiVersion", "kind", "status")
    given.tell_rest()
    old = given.within("metadata").text("name") or "jobconfig"
    name = draft.name_for("JobConfig", old, metadata.get("namespace", ""))
    if not draft.wishes.prefix and name != old:
        longest = LONGEST["JobConfig"]
        why = f"a JobConfig's name has at most {longest} characters, and no dots: {quoted(old)}"
        given.within("metadata").note("name", "is another one", why, f"it is called {name}")
    options = [option_of(one) for one in _options(spec)]
    made: dict[str, Any] = {}
    is_zoned = True
    if spec.data.get("schedule") is not None:
        space = draft.wishes.namespace or metadata.get("namespace") or ""
        schedule = spec.within("schedule")
        identity = f"{metadata.get('namespace') or space or 'default'}/{old}"
        made["schedules"] = [_schedule(schedule, identity)]
        is_zoned = bool(schedule.within("cron").text("timezone"))
        by_hand = draft.by_hand(name, metadata.get("namespace", ""))
        _leave_out_never_due(schedule, made, by_hand)
        is_zoned = is_zoned or "schedules" not in made
        moved = name != old or (metadata.get("namespace") or space) != space
        for one in made.get("schedules", ()):
            _tell_hash(schedule, one["cron"], identity, moved)
    made["concurrency"] = _concurrency(spec.within("concurrency"))
    if options:
        made["options"] = options
    names = [str(option["name"]) for option in options]
    made["template"] = job_template(spec.within("template"), names)
    spec.tell_rest()
    draft.add(
        *(given.line_of(), f"JobConfig {old}", "JobConfig", name),
        paths=_PATHS,
        is_zoned=is_zoned,
        metadata=metadata,
        spec=made,
    )


def _options(spec: Fields) -> list[Fields]:
    option = spec.within("option")
    found = list(option.each("options"))
    option.tell_rest()
    return found


def _schedule(given: Fields, identity: str) -> dict[str, Any]:
    cron = given.within("cron")
    given.require("cron", cron.data)
    one, several = cron.text("expression"), cron.texts("expressions")
    cron.require("expression", one or several)
    if one and several:
        why = "Furiko takes either"
        cron.note("expressions", "are not carried over", why, "expression alone")
        several = []
    lines = [line_of(cron, text, identity) for text in ([one] if one else several)]
    zone = cron.text("timezone") or given.draft.zone
    cron.tell_rest()
    # "Local" is UTC to Furiko, wherever it runs.
    made: dict[str, Any] = {"cron": lines[0] if one else lines}
    if any(len(line.split()) == 6 for line in lines):
        made["format"] = "YearLast"
    made |= {"timezone": "UTC" if zone == "Local" else zone, "onGap": "Skip", "onRepeat": "Both"}
    constraints = given.within("constraints")
    for name in ("notBefore", "notAfter"):
        if moment := constraints.text(name):
            made[name] = moment
    constraints.tell_rest()
    if given.flag("disabled"):
        made["disabled"] = True
    given.pass_over("lastUpdated")
    given.tell_rest()
    return made


def _leave_out_never_due(given: Fields, made: dict[str, Any], by_hand: str) -> None:
    """Take out lines that are never due; a config that has no other is run by hand."""
    (schedule,) = made["schedules"]
    cron = schedule["cron"]
    lines = [cron] if isinstance(cron, str) else cron
    never = [line for line in lines if is_never_due(line)]
    if not never:
        return
    why = "it names days that no month has"
    if len(never) == len(lines):
        del made["schedules"]
        instead = f"a JobConfig without schedules: {by_hand} runs it by hand"
    else:
        schedule["cron"] = [line for line in lines if line not in never]
        instead = "the other lines"
    given.note("cron", f"{quoted(never[0])} is never due", why, instead)


def _tell_hash(given: Fields, cron: str | list[str], identity: str, moved: bool) -> None:
    """Tell that an H falls elsewhere when the name or the namespace is another one."""
    lines = [cron] if isinstance(cron, str) else cron
    if moved and any("H" in word for line in lines for word in line.split() if not _is_name(word)):
        why = f"it is drawn by the namespace and the name, and both were {identity} to Furiko"
        given.note("cron", "H falls on other times", why, "the times of the new name")


def _is_name(word: str) -> bool:
    """Whether a field's H is in the name of a month or a day alone."""
    plain = word.upper().replace("MARCH", "").replace("THU", "")
    return "H" not in plain


def _concurrency(given: Fields) -> dict[str, Any]:
    policy = given.text("policy")
    given.require("policy", policy)
    if policy not in _POLICIES:
        why = f"Furiko knows {', '.join(_POLICIES)}"
        given.note("policy", f"{quoted(policy or '')} is not known", why, "Forbid")
        policy = "Forbid"
    made: dict[str, Any] = {"policy": policy}
    if (most := given.number("maxConcurrency")) is not None:
        made["maxConcurrency"] = most
    given.tell_rest()
    return made
