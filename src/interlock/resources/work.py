"""Work: what one attempt runs, with every variable replaced by its value.

Each type of work is a tagged struct, so that whoever is handed one knows what it is. What people
write under `spec` is in `process` and `pods`; which types there are is in `work_types`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from interlock.resources.adopted import AdoptedObject
from interlock.resources.metadata import Noun
from interlock.resources.pods import BatchJobTemplate, PodTemplate
from interlock.resources.process import EnvFile, ProcessLimits, ReadinessProbe


class Work(Noun, tag_field="type"):
    """Base of all types of work."""


class ProcessWork(Work, tag="process"):
    """A process on the machine of a keeper."""

    #: The program and all its arguments.
    command: tuple[str, ...]
    #: What its owner gave it; the order's own variables win over these, these over `env_from`.
    env: dict[str, str] = {}
    env_from: tuple[EnvFile, ...] = ()
    working_dir: str | None = None
    stdin: str | None = None
    user: str | None = None
    group: str | None = None
    limits: ProcessLimits = ProcessLimits()
    readiness_probe: ReadinessProbe | None = None


class PodWork(Work, tag="pod"):
    """A pod of a cluster."""

    template: PodTemplate


class PythonCall(StrEnum):
    """What a function of an application is called for."""

    #: To turn a request into steps; or, of a plain function, to say that it is the only one.
    ELABORATE = "elaborate"
    #: To do a step.
    RUN = "run"
    #: To undo it.
    UNDO = "undo"


class PythonWork(Work, tag="python"):
    """A function of an application that a worker has loaded."""

    function: str
    args: dict[str, Any] = {}
    call: PythonCall = PythonCall.RUN
    #: The step that it is for.
    step: str = ""
    #: What earlier steps returned, and of one to be undone also itself, as JSON by their names.
    results: dict[str, str] = {}
    #: The queue whose workers do it; empty for the one without a name.
    queue: str = ""
    #: The fencing token of each lock, by its key.
    fences: dict[str, int] = {}
    #: The path of the target, and who asked.
    target: str = ""
    creator: str = ""
    #: Other attempts of the Job that were not recorded as over when this one was: task and number.
    open_attempts: tuple[tuple[int, int], ...] = ()
    #: Whether nothing else may be done beside it in the process of its worker: the last one of it
    #: was cut off there, and may have killed that.
    alone: bool = False
    #: Whether it is ordered once more: others may have been told to do it before.
    again: bool = False


class BatchWork(Work, tag="batchJob"):
    """A `batch/v1` Job of a cluster."""

    template: BatchJobTemplate


class AdoptedWork(Work, tag="adopted"):
    """What somebody else made, which is let run."""

    object: AdoptedObject
    #: The Queue that it has to be labelled with.
    queue: str = ""
    #: How many pods at a time it was granted.
    pods: int = 1
