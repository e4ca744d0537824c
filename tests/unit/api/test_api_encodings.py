"""Encodings are shared, bounded, and never mixed up."""

from __future__ import annotations

from interlock.api.encodings import LARGEST_BYTES, Encodings
from interlock.resources.codec import encode
from interlock.testing.builders import a_job


def test_the_same_resource_is_encoded_once() -> None:
    encodings, job = Encodings(), a_job("a")
    assert encodings.of(job) is encodings.of(job)
    assert encodings.once(job) is encodings.of(job)


def test_others_get_their_own_however_many_there_were() -> None:
    encodings = Encodings(kept=3)
    for number in range(50):
        job = a_job(f"job-{number}")
        assert encodings.of(job) == encode(job)
    assert len(encodings._made) == 3


def test_large_ones_are_not_kept() -> None:
    encodings, job = Encodings(), a_job("a", title="x" * LARGEST_BYTES)
    assert encodings.of(job) == encode(job)
    assert not encodings._made
