"""Uids and the endings of generated names."""

from __future__ import annotations

import uuid
from random import Random

import pytest

from interlock.store.contract import Identities
from interlock.store.identities import RandomIdentities, SeededIdentities


@pytest.mark.parametrize("identities", [RandomIdentities(), SeededIdentities(Random(1))])
def test_identities_are_well_formed_and_different(identities: Identities) -> None:
    uids = {identities.uid() for _ in range(1000)}
    suffixes = {identities.suffix() for _ in range(100)}

    assert len(uids) == 1000
    assert all(str(uuid.UUID(uid)) == uid and uuid.UUID(uid).version == 4 for uid in uids)
    assert {uuid.UUID(uid).variant for uid in uids} == {uuid.RFC_4122}
    assert {len(suffix) for suffix in suffixes} == {5}


def test_a_seed_gives_the_same_again() -> None:
    one, two = SeededIdentities(Random(3)), SeededIdentities(Random(3))

    assert [one.uid(), one.suffix()] == [two.uid(), two.suffix()]
