"""The client with threads: submit, read, wait for, stream and steer what there is.

It may be shared by threads. It is `interlock.sdk.async_client` without an event loop, and written
from that by tools/write_sync.py: change that one, then `make docs`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from interlock.client.kinds import JOB_CONFIGS, Kind
from interlock.resources.metadata import Noun
from interlock.sdk import orders, reading, streaming, submitting
from interlock.sdk.connecting import PATIENCE_S, TIMEOUT_S, site_of
from interlock.sdk.effects import Plan
from interlock.sdk.errors import Refused
from interlock.sdk.handle import Handle
from interlock.sdk.manifests import Manifest, data_of, job_of, kind_for, placed
from interlock.sdk.orders import Ordered, Orders
from interlock.sdk.record import JobRecord
from interlock.sdk.streaming import Change, Excerpt
from interlock.sdk.wire import SyncWire

T = TypeVar("T")
Item = dict[str, Any]


class Client(Orders[Ordered]):
    """A server, or a cluster that is reached through a kubeconfig.

    Without arguments it is found as the command line finds it: `INTERLOCK_SERVER`, the data
    directory that is here, `KUBECONFIG`, the pod that this is. A namespace that a call does not
    name is the client's.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        ca_file: str | Path | None = None,
        context: str | None = None,
        kubeconfig: str | Path | None = None,
        namespace: str | None = None,
        timeout: float = TIMEOUT_S,
        patience: float = PATIENCE_S,
    ) -> None:
        """Find the server; it is not asked before the first call.

        Args:
            server: Its address, as in `https://jobs.example.com:8470`.
            token: What proves who asks; `token_file` is the file that holds it.
            ca_file: The certificates that are trusted for `https`.
            context: A context of a kubeconfig; `kubeconfig` is the file.
            namespace: What is not named otherwise is in it.
            timeout: So many seconds an answer may take.
            patience: So many seconds a server that is away is looked for, where nothing can be
                done twice.
        """
        self.site = site_of(
            server,
            token=token,
            token_file=token_file,
            ca_file=ca_file,
            context=context,
            kubeconfig=kubeconfig,
            namespace=namespace,
            patience=patience,
        )
        self._wire = SyncWire(self.site.target, timeout)

    @property
    def url(self) -> str:
        """The address of the server."""
        return self.site.target.url

    @property
    def namespace(self) -> str:
        """The namespace of what is not named otherwise."""
        return self.site.namespace

    def close(self) -> None:
        """Let all connections go."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def run_plan(self, plan: Plan[T]) -> T:
        """Carry out a plan of `interlock.sdk`."""
        return self._wire.run(plan)

    # Jobs

    def submit(self, manifest: Manifest, *, idempotency_key: str | None = None) -> Handle:
        """Make a Job: it is durable when this returns.

        The manifest may leave out `apiVersion`, `kind` and `metadata.name`. Whoever submits twice
        with one key gets one Job; without a key each call has its own, so that a submission whose
        answer was lost is sent again without harm.

        Raises:
            Invalid: The manifest is not good; `problems` tells field by field.
            TooManyPending: Its target has as many operations waiting as it may.
            Conflict: The name is taken.
        """
        job = job_of(manifest, self.namespace)
        plan = submitting.submit(self.site, job, idempotency_key)
        return Handle(self, self._wire.run(plan))

    def submit_many(
        self,
        manifests: Iterable[Manifest],
        *,
        chunk: int = 500,
        idempotency_key: str | None = None,
    ) -> builtins.list[Handle | Refused]:
        """Make many Jobs, so many in one request; each is a handle, or why it was refused.

        With an `idempotency_key` a call that broke off is repeated without harm, as long as the
        manifests and their order are the same.
        """
        jobs = [job_of(manifest, self.namespace) for manifest in manifests]
        plan = submitting.submit_many(self.site, jobs, idempotency_key, chunk)
        return [
            one if isinstance(one, Refused) else Handle(self, one) for one in self._wire.run(plan)
        ]

    def job(self, id_or_name: str, namespace: str | None = None) -> Handle:
        """The Job with an id or a name."""
        plan = reading.find_job(self.site, id_or_name, namespace or self.namespace)
        return Handle(self, self._wire.run(plan))

    def jobs(
        self,
        *,
        state: str | Iterable[str] = (),
        creator: str = "",
        path: str = "",
        ids: Iterable[str] | None = None,
        newest_first: bool = True,
        limit: int | None = None,
        namespace: str | None = None,
    ) -> Iterator[JobRecord]:
        """The records of Jobs in all namespaces that may be seen, or in one.

        `state` is one or several of `queued`, `executing`, `reverting`, `complete`; `path` is that
        of a target, which stands for all that is below it too. What is asked for combines.
        """
        wanted = reading.Wanted(
            states=state,
            creator=creator,
            path=path,
            ids=ids,
            newest_first=newest_first,
            limit=limit,
        )
        return self._wire.iterate(reading.jobs(self.site, wanted, namespace))

    def logs(
        self,
        job: Handle | str,
        *,
        follow: bool = False,
        step: str = "",
        undo: bool = False,
        task: int = 0,
        attempt: int | None = None,
        since: datetime | None = None,
        tail: int | None = None,
        namespace: str | None = None,
    ) -> Iterator[str]:
        """What an attempt printed, line by line: of a task, or of a step or its undo.

        With `follow` it waits for the attempt to begin, and goes on until it is over.
        """
        excerpt = Excerpt(
            task=task,
            attempt=attempt,
            step=step,
            undo=undo,
            follow=follow,
            since=since,
            tail=tail,
        )
        found = job if isinstance(job, Handle) else self.job(job, namespace)
        lines = self._wire.iterate(streaming.logs(self.site, found.status, excerpt))
        with closing(lines):
            yield from lines

    def stream(
        self, *, namespace: str | None = None, labels: str = "", since: str = ""
    ) -> Iterator[Change]:
        """Changes of Jobs as they happen, without an end, from a version or from now on.

        What is missed while the server is away is made up for.

        Raises:
            Conflict: The version is too old: list, and begin anew.
        """
        return self._wire.iterate(streaming.stream(self.site, namespace, labels, since))

    # Resources of every kind

    def apply(self, manifest: Manifest) -> Item:
        """Make a resource what a manifest says, and leave alone what others wrote."""
        document = placed(data_of(manifest), self.namespace)
        return self._wire.run(reading.apply(self.site, document))

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Item:
        """One resource, as it is stored."""
        plan = reading.get(self.site, kind_for(kind), namespace or self.namespace, name)
        return self._wire.run(plan)

    def list(
        self, kind: str, *, labels: str = "", namespace: str | None = None, everywhere: bool = False
    ) -> Iterator[Item]:
        """The resources of a kind, in a namespace or everywhere."""
        place = None if everywhere else namespace or self.namespace
        return self._wire.iterate(reading.list_all(self.site, kind_for(kind), place, labels=labels))

    def delete(self, kind: str, name: str, *, namespace: str | None = None) -> None:
        """Delete a resource; a Job that runs goes once it has ended."""
        plan = reading.delete(self.site, kind_for(kind), namespace or self.namespace, name)
        self._wire.run(plan)

    # Orders; the others are those of `Orders`

    def give(
        self, kind: Kind, name: str, verb: str, how: Noun, namespace: str | None = None
    ) -> Ordered:
        """Give any order of `interlock.commands`."""
        place = namespace or self.namespace
        return self._wire.run(orders.order(self.site, kind, place, name, verb, how))

    def run(
        self,
        config: str,
        *,
        options: Mapping[str, Any] | None = None,
        substitutions: Mapping[str, str] | None = None,
        name: str = "",
        at: str | None = None,
        after: timedelta | None = None,
        policy: str | None = None,
        namespace: str | None = None,
    ) -> Handle:
        """Make a Job of a JobConfig, now or for later."""
        kind, found = orders.named(config, JOB_CONFIGS)
        how = orders.running(name, options, substitutions, at, after, policy)
        ordered = self.give(kind, found, "run", how, namespace)
        return Handle(self, orders.record_made(ordered))

    # Questions

    def why(self, kind: str, name: str, *, namespace: str | None = None) -> Item:
        """Why a Job, a JobConfig or a ControlledJob runs, or does not."""
        plan = reading.why(self.site, kind_for(kind), namespace or self.namespace, name)
        return self._wire.run(plan)

    def history(
        self,
        kind: str | None = None,
        name: str = "",
        *,
        limit: int = 100,
        namespace: str | None = None,
    ) -> builtins.list[Item]:
        """What was decided, newest first, about one thing or about all."""
        about = reading.one_or_all(kind, name)
        place = namespace or self.namespace
        return self._wire.run(reading.history(self.site, about, place, name, limit))

    def next(
        self,
        kind: str | None = None,
        name: str = "",
        *,
        begin: datetime | None = None,
        end: datetime | None = None,
        limit: int = 20,
        namespace: str | None = None,
    ) -> builtins.list[Item]:
        """What will run, start, stop and be skipped: of one schedule or of all."""
        about = reading.one_or_all(kind, name)
        place = namespace or self.namespace
        return self._wire.run(reading.upcoming(self.site, about, place, name, begin, end, limit))
