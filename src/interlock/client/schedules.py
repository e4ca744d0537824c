"""Schedules as a server stores them, our own or a cluster's: read into nouns."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import ValidationError

from interlock.client.api import Api
from interlock.client.errors import AnswerError, CommandError
from interlock.client.kinds import CALENDARS, Kind
from interlock.kube.store.codec import WIRES
from interlock.resources.calendar import Calendar
from interlock.resources.metadata import Resource


def read_one(api: Api, kind: Kind, namespace: str, name: str) -> Resource:
    """One resource."""
    return noun_of(kind, name, api.fetch("GET", kind.path(namespace, name)))


def noun_of(kind: Kind, name: str, data: bytes) -> Resource:
    """The resource that a server's answer tells of."""
    try:
        return WIRES[kind.name].one(data)
    except ValidationError as error:
        raise CommandError(
            f"{kind.singular}/{name} cannot be read: {error}",
            hint="it was written by another version of this program; use that one",
        ) from None


def read_calendars(api: Api, resource: Resource) -> Iterator[Calendar]:
    """The calendars that a schedule names; one that is not there is part of the answer."""
    # Most orders are about Jobs, and need nothing of schedules.
    from interlock.schedules.calendars import calendars_named_by

    for name in calendars_named_by(resource):
        try:
            calendar = read_one(api, CALENDARS, resource.metadata.namespace, name)
        except AnswerError as error:
            if error.status != 404:
                raise
            continue
        assert isinstance(calendar, Calendar)
        yield calendar
