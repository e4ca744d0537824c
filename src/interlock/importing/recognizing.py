"""Definitions of other systems, where our own were expected: which import is for them."""

from __future__ import annotations

import re
from typing import Any

_GROUPS = {
    ("batch", "CronJob"): "cronjob",
    ("batch.gresearch.co.uk", "ControlledJob"): "controlledjob",
    ("execution.furiko.io", "JobConfig"): "furiko",
    ("execution.furiko.io", "Job"): "furiko",
    ("config.kueue.x-k8s.io", "Configuration"): "kueue",
    ("kueue.x-k8s.io", "ClusterQueue"): "kueue",
    ("kueue.x-k8s.io", "Cohort"): "kueue",
    ("kueue.x-k8s.io", "LocalQueue"): "kueue",
    ("kueue.x-k8s.io", "ResourceFlavor"): "kueue",
    ("kueue.x-k8s.io", "WorkloadPriorityClass"): "kueue",
}
_CALLED = {
    "cronjob": "a CronJob of Kubernetes",
    "controlledjob": "a ControlledJob of batch.gresearch.co.uk",
    "furiko": "a definition of Furiko",
    "kueue": "a definition of Kueue",
}
_CRON_LINE = re.compile(rb"(?:@\w+|(?:[\d*/,\-A-Za-z]+[ \t]+){5})[^\n]+")
#: So much of a file shows what it is.
_LOOKED_AT = 4096


def import_for(data: dict[str, Any], file: str) -> str:
    """What a document is and how to import it; empty when it is no other system's."""
    group = str(data.get("apiVersion") or "").partition("/")[0]
    kind = str(data.get("kind") or "")
    if kind == "CronJob" and group in ("", "interlock.dev"):
        group = "batch"
    if (group, kind) == ("batch", "Job"):
        return "is a Job of Kubernetes: give its spec to a Job of ours as spec.batchJob.spec"
    sort = _GROUPS.get((group, kind))
    return f"is {_CALLED[sort]}: interlock import {sort} {file}" if sort else ""


def import_for_text(text: bytes, file: str) -> str:
    """How to import what is no YAML; empty when it is no other system's either."""
    head = text[:_LOOKED_AT]
    if head.lstrip().startswith(b"BEGIN:VCALENDAR"):
        return f"is it an iCalendar file? interlock import icalendar {file}"
    lines = [line.strip() for line in head.splitlines()]
    told = [line for line in lines if line and not line.startswith(b"#") and b"=" not in line[:30]]
    if told and all(_CRON_LINE.fullmatch(line) for line in told[:3]):
        return f"is it a crontab? interlock import crontab {file}"
    return ""
