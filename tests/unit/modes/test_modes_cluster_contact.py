"""A cluster that is not ready is waited for and told of; one that cannot be served is an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock.control.clock import SystemClock, Timer
from interlock.errors import ForbiddenError, InterlockError, UnavailableError
from interlock.kube.client.config import ClusterConfig
from interlock.kube.client.errors import DistrustedError, NotServedError, UnknownCallerError
from interlock.modes.cluster_contact import Contact
from interlock.modes.settings import SettingsError
from interlock.store.contract import Page

AWAY = UnavailableError("https://x does not answer")
NO_KINDS = NotServedError("the API server does not serve Job")


class Quick(SystemClock):
    """A clock for which every pause is over at once."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return super().call_later(0.0, callback)


class Scripted:
    """Fails with one error after the other, and then not any more."""

    config = ClusterConfig(server="https://x", source="a test")

    def __init__(self, *errors: InterlockError) -> None:
        self._errors = list(errors)

    async def list(self, kind: str, **_: Any) -> Page:
        if self._errors:
            raise self._errors.pop(0)
        return Page((), 1)


def contact(*errors: InterlockError) -> tuple[Contact, list[str]]:
    said: list[str] = []
    scripted: Any = Scripted(*errors)
    return Contact(scripted, scripted, Quick(), said.append), said


def test_every_change_is_told_once_and_then_it_is_made() -> None:
    made, said = contact(AWAY, AWAY, NO_KINDS, NO_KINDS, NO_KINDS, AWAY)
    assert made.waits_for

    asyncio.run(made.made())

    assert made.waits_for == ""
    assert len(said) == 3
    assert "does not answer" in said[0]
    assert "interlock manifests --only crds | kubectl apply -f -" in said[1]
    assert "does not answer" in said[2]


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        pytest.param(ForbiddenError("may not"), "--only rbac", id="no rights"),
        pytest.param(UnknownCallerError("who?"), "token", id="not known"),
        pytest.param(DistrustedError("self-signed"), "certificates", id="not trusted"),
    ],
)
def test_what_only_a_person_can_mend_is_the_end(error: InterlockError, hint: str) -> None:
    made, _ = contact(AWAY, error)

    with pytest.raises(SettingsError) as caught:
        asyncio.run(made.made())

    assert str(error) in str(caught.value)
    assert hint in caught.value.hint
