"""The cache: never older than what it knows, found by key and by index."""

from __future__ import annotations

from interlock.control.cache import Cache
from interlock.resources.job import Job
from interlock.testing.builders import a_job

KEY = a_job("a").key


def a_cache() -> Cache[Job]:
    return Cache("Job", {"title": lambda job: (job.spec.title,) if job.spec.title else ()})


def test_what_is_not_news_is_given_back_and_changes_nothing() -> None:
    cache = a_cache()
    new, old = a_job("a", version=5), a_job("a", version=4)

    assert cache.note(new) is None
    assert cache.note(old) is old
    assert cache.note(new) is new
    assert cache.get(KEY) is new


def test_indexes_follow_the_resource() -> None:
    cache = a_cache()
    cache.note(a_job("a", version=1, title="x"))
    cache.note(a_job("b", version=2, title="x"))
    cache.note(a_job("a", version=3, title="y"))

    assert [job.metadata.name for job in cache.by("title", "x")] == ["b"]
    assert cache.count("title", "y") == 1
    cache.drop(KEY, 4)
    assert cache.count("title", "y") == 0
    assert len(cache) == 1


def test_an_old_event_does_not_revive_what_was_deleted_but_a_new_resource_may_come() -> None:
    cache = a_cache()
    cache.note(a_job("a", version=3))
    assert cache.drop(KEY, 5) is not None

    late = a_job("a", version=4)
    assert cache.note(late) is late
    assert cache.get(KEY) is None
    assert cache.note(a_job("a", version=6)) is None
    assert cache.get(KEY) is not None


def test_an_answer_that_comes_after_the_deletion_was_heard_is_known_to_be_old() -> None:
    cache = a_cache()
    cache.note(a_job("a", version=3))
    cache.drop(KEY, 5)
    cache.settle(5)

    assert cache.has_seen_go(a_job("a", version=4))
    assert not cache.has_seen_go(a_job("a", version=6))
    cache.note(a_job("a", version=6))
    cache.settle(7)
    assert not cache.has_seen_go(a_job("a", version=6))


def test_a_late_deletion_does_not_drop_what_came_after_it() -> None:
    cache = a_cache()
    cache.note(a_job("a", version=7))

    assert cache.drop(KEY, 6) is None
    assert cache.get(KEY) is not None
