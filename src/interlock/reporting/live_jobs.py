"""Jobs that are stored, as the status API shows them: from the caches, with their children."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.control.cache import Cache
from interlock.execution.children import counted, under
from interlock.reporting.job_index import PARENT, Entry, JobIndex
from interlock.reporting.job_record import JobView, record_of, view_of
from interlock.reporting.listing import Listing, Part, entries_of
from interlock.reporting.visibility import Sees, everything, sees_job
from interlock.resources.ancestry import parent_key
from interlock.resources.job import Job

#: How many Jobs one page may pass over; a page may be short, its cursor goes on from there.
WALKED = 20_000


class LiveJobs:
    """What the caches know of Jobs, one by one and in lists."""

    def __init__(self, roster: JobIndex, jobs: Cache[Job]) -> None:
        self._roster = roster
        self._jobs = jobs

    @property
    def version(self) -> str:
        """The version up to which everything is known."""
        return str(self._jobs.version)

    def by_uid(self, uid: str) -> Job | None:
        """The Job with this uid, when there is one."""
        key = self._roster.key_of(uid)
        return self._jobs.get(key) if key is not None else None

    def children(self, job: Job) -> tuple[Job, ...]:
        """The Jobs that are parts of it, those that were made first before the others."""
        entries = self._roster.under(PARENT, under(job))
        found = [self.by_uid(entry.uid) for entry in entries] if entries else ()
        # Another Job of this name may have been a parent before this one was made.
        made_at = job.metadata.creation_timestamp
        return tuple(
            child
            for child in found
            if child is not None
            and (made_at is None or (child.metadata.creation_timestamp or made_at) >= made_at)
        )

    def view(self, job: Job) -> JobView:
        """The Job with its children and its parent, as it is now."""
        children = self.children(job)
        parent = parent_key(job)
        of = self._jobs.get(parent) if parent is not None else None
        record = record_of(
            job,
            [child.metadata.uid for child in children],
            of.metadata.uid if of is not None else None,
            counted(children),
        )
        return view_of(job, record)

    def part(self, listing: Listing, sees: Sees = everything) -> Part[JobView]:
        """The first Jobs of a list, and how far was looked."""
        found: list[tuple[Entry, JobView]] = []
        last: Entry | None = None
        for walked, entry in enumerate(self._walk(listing)):
            if len(found) > listing.limit or walked >= WALKED:
                return Part(found, last)
            last = entry
            if not listing.chooses(self._roster.facets(entry.uid)):
                continue
            job = self.by_uid(entry.uid)
            if job is not None and listing.matches_job(job) and sees_job(sees, job):
                found.append((entry, self.view(job)))
        return Part(found, None)

    def _walk(self, listing: Listing) -> Iterator[Entry]:
        if listing.ids is None:
            after, newest = listing.after, listing.newest
            return self._roster.walk(listing.choices, after=after, newest=newest)
        known = (self._roster.entry(uid) for uid in listing.ids)
        return entries_of(listing, (entry for entry in known if entry is not None))
