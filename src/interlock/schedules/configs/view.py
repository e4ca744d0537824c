"""The view of a JobConfig: what a decision about it may depend on."""

from __future__ import annotations

from msgspec import Struct

from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.schedules.configs.due_times import Timing


class ConfigView(Struct, frozen=True, kw_only=True):
    """A config, when it is due, and its Jobs."""

    config: JobConfig
    timing: Timing
    #: The Jobs that the config manages, whoever made them.
    jobs: tuple[Job, ...] = ()
    #: The uids of Jobs in the books that are proven gone.
    gone: frozenset[str] = frozenset()
    #: Names that Jobs of others have.
    foreign: frozenset[str] = frozenset()
