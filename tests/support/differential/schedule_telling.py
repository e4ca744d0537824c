"""How is the story of schedules told, so that it has the same words at any time of day?"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from interlock.private_files import user_name
from support.differential.scenario import ENDS, Object

#: A server knows by the kernel's word who asks; in a cluster without a webhook nobody does.
_BY_ME = f" by {user_name(os.geteuid())}"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?")
#: What a person is told to have stopped, or who is held back.
_ANNOTATIONS = (
    "interlock.dev/is-manually-scheduled",
    "interlock.dev/suspend-reason",
    "interlock.dev/stopped-because",
    "interlock.dev/takes-over-from",
)
#: An edit finds a due time that was not looked at yet, or it does not.
_BY_CHANCE = "ScheduleChanged"


class Names:
    """Gives Jobs names that do not depend on the time: the owner's, and a number."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._labels: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, job: Object) -> None:
        """Give a Job a name. The first one of its owner has number 1."""
        metadata = job["metadata"]
        owners = [one["name"] for one in metadata.get("ownerReferences", ())]
        owner = owners[0] if owners else metadata["name"]
        self._counts[owner] += 1
        self._labels[metadata["name"]] = f"{owner.removeprefix(self._prefix)}#{self._counts[owner]}"

    def label(self, name: str) -> str:
        """What the story calls a Job."""
        return self._labels[name]

    def find(self, label: str) -> str | None:
        """The name on the stage; None when there is no such Job yet."""
        return next((name for name, given in self._labels.items() if given == label), None)

    def real(self, label: str) -> str:
        """The name on the stage."""
        found = self.find(label)
        assert found is not None, f"there is no {label}"
        return found

    def plain(self, text: str) -> str:
        """A text in the words of the story."""
        for name in sorted(self._labels, key=len, reverse=True):
            text = text.replace(name, self._labels[name])
        return _MOMENT.sub("TIME", text.replace(self._prefix, "").replace(_BY_ME, ""))


def job_told(job: Object) -> Iterator[str]:
    """What became of a Job, and what it was made with."""
    status, spec, metadata = job.get("status") or {}, job["spec"], job["metadata"]
    admission, execution = status.get("admission") or {}, status.get("execution") or {}
    phase = status.get("phase") if status.get("phase") in ENDS else "not over"
    reason = admission.get("refusal") or execution.get("reason") or ""
    yield f"is {phase} {reason}".rstrip()
    for lock in spec.get("locks", ()):
        # A cluster writes out what is not said.
        yield f"asks for {_pairs({'limit': 1, 'whenTaken': 'Enqueue', **lock})}"
    annotations = metadata.get("annotations") or {}
    for name in _ANNOTATIONS:
        if name in annotations:
            yield f"says {name.partition('/')[2]}: {annotations[name]}"
    if spec.get("killAt"):
        yield "is to be stopped"
    for owner in metadata.get("ownerReferences", ()):
        yield f"belongs to {owner['kind']} {owner['name']}"


def skips(config: Object) -> list[str]:
    """Why due times were skipped: each reason once."""
    found = (config.get("status") or {}).get("skips", ())
    told = {
        f"{skip['reason']} {re.sub(r'[0-9]+ Jobs', 'some Jobs', skip.get('message', ''))}".rstrip()
        for skip in found
        if skip["reason"] != _BY_CHANCE
    }
    return sorted(told)


def controlled_told(controlled: Object) -> Iterator[str]:
    """How a ControlledJob is going."""
    status = controlled.get("status") or {}
    for name in ("shouldBeRunning", "isSuspended", "lastRunId"):
        yield f"{name}: {status.get(name)}"
    window = status.get("window") or {}
    job = (window.get("job") or {}).get("name", "no Job")
    yield f"window: {window.get('outcome')}, {window.get('runs', 0)} runs, {job}"
    for record in reversed(status.get("actionHistory") or []):
        told = f"{record['type']} {record.get('jobName', '')}: {record.get('message', '')}"
        yield f"did {told}"


def _pairs(told: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(told.items()))
