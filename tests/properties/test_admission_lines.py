"""Whatever happens to Jobs, every line holds exactly those who wait, in their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.admission.claims.locks import LOCKS
from interlock.admission.lines import Lines, place_of, stands_in_line
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobStatus, WhenTaken
from interlock.resources.lock import lock_name
from interlock.resources.metadata import Key
from interlock.testing.builders import a_job, a_request

KEYS = ("a", "b")
NAMES = ("x", "y", "z")

requests = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from([WhenTaken.ENQUEUE, WhenTaken.ALLOW])),
    max_size=2,
    unique_by=lambda request: request[0],
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    locks = tuple(a_request(key, when_taken=taken) for key, taken in draw(requests))
    admission = AdmissionStatus(
        phase=draw(st.sampled_from(AdmissionPhase)), sequence=draw(st.integers(0, 3))
    )
    return a_job(
        draw(st.sampled_from(NAMES)),
        version=draw(st.integers(4, 6)),
        locks=locks,
        priority=draw(st.integers(-1, 1)),
        suspend=draw(st.booleans()),
        status=JobStatus(admission=admission),
    )


@given(changes=st.lists(st.tuples(jobs(), st.booleans()), max_size=20))
def test_every_line_holds_exactly_those_who_wait(changes: list[tuple[Job, bool]]) -> None:
    lines = Lines()
    stored: dict[str, Job] = {}
    for job, is_gone in changes:
        if is_gone:
            stored.pop(job.metadata.name, None)
        else:
            stored[job.metadata.name] = job
        lines.update(job.key, None if is_gone else job, LOCKS.asks(job))

        waiting = sorted(filter(stands_in_line, stored.values()), key=place_of)
        for key in KEYS:
            line = lines.of(Key("Lock", "default", lock_name(key)))
            assert list(line.jobs() if line else ()) == [
                job.key for job in waiting if _asks(job, key, WhenTaken.ENQUEUE)
            ]
            assert set(line.allowed if line else ()) == {
                job.key for job in waiting if _asks(job, key, WhenTaken.ALLOW)
            }


def _asks(job: Job, key: str, taken: WhenTaken) -> bool:
    return any(r.key == key and r.when_taken is taken for r in job.spec.locks)
