"""The view of execution: everything that a decision about a running Job may depend on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from interlock.execution.children import Children
from interlock.resources.job import Job
from interlock.resources.tasks import TaskId, TaskReport

#: What a runtime said of a Job's attempts, by task number and attempt.
JobReports = Mapping[tuple[int, int], TaskReport]


class ExecutionView(Struct, frozen=True, kw_only=True):
    """One Job, what the runtime says of it, and the room on this machine."""

    #: None when the Job is gone and only `strays` are left of it.
    job: Job | None
    reports: JobReports = {}
    #: Whether the runtime has told all it knows. Until then a missing report means nothing.
    reports_complete: bool = True
    #: How many more attempts than its status holds now the Job may have at a time. Negative when
    #: what it gives up is meant for others.
    capacity: int = 1_000
    #: Reports under this Job's name that are of another, older Job.
    strays: tuple[TaskReport, ...] = ()
    #: When this process last told the runtime to stop an attempt.
    told: Mapping[TaskId, datetime] = {}
    #: News that a task runs is worth a write of its own only once it is this old: most tasks
    #: that end soon then need one write, not two.
    patience: timedelta = timedelta()
    #: How many attempts one decision hands to the runtime; the others follow in the next ones.
    #: Until a decision is carried out nothing else is done about its Job, not even a stop.
    launches_at_once: int = 1_000
    #: Locks that the Job's status says it holds, or that it needs, and whose records do not name
    #: it: whoever wrote that status was not the admission room.
    ungranted: tuple[str, ...] = ()
    #: How the Jobs are going that have this one as their parent.
    children: Children = Children()
    #: The targets of the operations that the Job is a part of, and the names of these: what is done
    #: to one of them cannot be a part of it, for it would wait for ever.
    targets_above: Mapping[str, str] = {}
    #: Whether the Job is a part of one that is not over: until that is, it stays readable.
    has_open_parent: bool = False
    #: Whether some record has not been heard of as it was when the Job was let in.
    grants_unheard: bool = False

    @property
    def may_launch(self) -> bool:
        """Whether the records that grant the Job's locks say so. A status alone lets nobody in."""
        return not self.ungranted and not self.grants_unheard
