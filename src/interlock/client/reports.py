"""Report requests: why, locks, lists of Jobs, history, logs.

A server of our own answers them at paths of its own. A cluster's API server knows nothing of
them; there `cluster.reports` works the same answers out from what is stored.
"""

from __future__ import annotations

from typing import Any, Protocol

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.client.http_client import Answer, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from interlock.client.api import Api
    from interlock.client.kinds import Kind

Report = dict[str, Any]

#: The server hands out at most this many at a time.
_PAGE = 500


class Excerpt:
    """Which part of which log."""

    def __init__(
        self,
        *,
        task: int = 0,
        attempt: int | None = None,
        follow: bool = False,
        since: str = "",
        tail: int | None = None,
        container: str = "",
    ) -> None:
        self.task = task
        #: None means the newest.
        self.attempt = attempt
        self.follow = follow
        #: The moment before which nothing is wanted.
        self.since = since
        self.tail = tail
        #: One of several containers of a pod.
        self.container = container

    def of(self, task: int, attempt: int) -> Excerpt:
        """The same part of another log, for following it."""
        return Excerpt(
            task=task,
            attempt=attempt,
            follow=True,
            since=self.since,
            tail=self.tail,
            container=self.container,
        )


class Reports(Protocol):
    """Whoever answers questions."""

    def why(self, namespace: str, name: str) -> Report:
        """Why a Job is, or is not, running."""
        ...

    def why_schedule(self, kind: Kind, namespace: str, name: str) -> Report:
        """Why a JobConfig or a ControlledJob is, or is not, running."""
        ...

    def standstill(self, namespace: str) -> str:
        """Why nothing at all moves in a namespace; empty when nothing is wrong with that."""
        ...

    def locks(self, namespace: str | None) -> list[Report]:
        """Who holds and who waits for each lock, of a namespace or of all."""
        ...

    def queues(self, namespace: str) -> list[Report]:
        """Each Queue in short; of a namespace alone where its Jobs are all that may be read."""
        ...

    def queue(self, namespace: str, name: str, limit: int | None) -> Report:
        """One Queue: who holds its quota, the first of those who wait, and why."""
        ...

    def beds(self, namespace: str | None) -> list[Report]:
        """Each TestBed in short, of a namespace or of all."""
        ...

    def bed(self, namespace: str, name: str) -> Report:
        """One TestBed: each of its slots, who is in it, and who waits."""
        ...

    def overview(
        self, namespace: str | None, *queries: dict[str, object]
    ) -> tuple[list[Report], list[Report]]:
        """Pages of Jobs in short, one for each query, and the locks at about the same moment."""
        ...

    def history(self, key: dict[str, str], limit: int, before: int | None) -> Report:
        """What was decided, newest first, about one thing or about all."""
        ...

    def log(
        self, namespace: str, name: str, excerpt: Excerpt, known: Container[str] = ()
    ) -> Iterator[tuple[str, Answer]]:
        """What an attempt printed: a stream for each source that is not known yet, by its name."""
        ...


class ServerReports:
    """Our own server's answers."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def why(self, namespace: str, name: str) -> Report:
        """Why a Job is, or is not, running."""
        answer: Report = self._api.call("GET", f"/jobs/{quote(namespace)}/{quote(name)}/why")
        return answer

    def why_schedule(self, kind: Kind, namespace: str, name: str) -> Report:
        """Why a JobConfig or a ControlledJob is, or is not, running."""
        path = f"/{kind.plural}/{quote(namespace)}/{quote(name)}/why"
        answer: Report = self._api.call("GET", path)
        return answer

    def standstill(self, namespace: str) -> str:  # noqa: ARG002 - whoever answers also works
        """Nothing: a server that answers is one that works."""
        return ""

    def locks(self, namespace: str | None) -> list[Report]:
        """Who holds and who waits for each lock, of a namespace or of all."""
        answer = self._api.call("GET", "/locks", {"namespace": namespace})
        items: list[Report] = answer["items"]
        return items

    def queues(self, namespace: str) -> list[Report]:  # noqa: ARG002 - a server reads all Jobs
        """Each Queue in short."""
        items: list[Report] = self._api.call("GET", "/queues")["items"]
        return items

    def queue(self, namespace: str, name: str, limit: int | None) -> Report:  # noqa: ARG002
        """One Queue: who holds its quota, the first of those who wait, and why."""
        answer: Report = self._api.call("GET", f"/queues/{quote(name)}", {"limit": limit})
        return answer

    def beds(self, namespace: str | None) -> list[Report]:
        """Each TestBed in short, of a namespace or of all."""
        items: list[Report] = self._api.call("GET", "/slots", {"namespace": namespace})["items"]
        return items

    def bed(self, namespace: str, name: str) -> Report:
        """One TestBed: each of its slots, who is in it, and who waits."""
        answer: Report = self._api.call("GET", f"/slots/{quote(namespace)}/{quote(name)}")
        return answer

    def overview(
        self, namespace: str | None, *queries: dict[str, object]
    ) -> tuple[list[Report], list[Report]]:
        """Pages of Jobs in short, one for each query, and the locks at about the same moment."""
        pages = [
            self._api.call("GET", "/jobs", {**query, "namespace": namespace}) for query in queries
        ]
        return pages, self.locks(namespace)

    def history(self, key: dict[str, str], limit: int, before: int | None) -> Report:
        """The newest entries, put together from as many answers as it takes."""
        items: list[Report] = []
        following: Any = before
        while len(items) < limit:
            asked = min(limit - len(items), _PAGE)
            page = self._api.call("GET", "/history", {**key, "limit": asked, "before": following})
            items += page["items"]
            following = page.get("next")
            if not page["items"] or following is None:
                break
        return {"items": items, "next": following}

    def log(
        self, namespace: str, name: str, excerpt: Excerpt, known: Container[str] = ()
    ) -> Iterator[tuple[str, Answer]]:
        """The one log that an attempt has."""
        if excerpt.container:
            raise CommandError(
                "there are no containers here: a Job of this server runs processes",
                code=BAD_INPUT,
            )
        if "" in known:
            return
        query: dict[str, object] = {
            "task": excerpt.task,
            "attempt": excerpt.attempt,
            "follow": 1 if excerpt.follow else None,
            "since": excerpt.since,
            "tail": excerpt.tail,
        }
        path = f"/jobs/{quote(namespace)}/{quote(name)}/log"
        yield "", self._api.stream("GET", path, query, accept="text/plain")
