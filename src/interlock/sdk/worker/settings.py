"""What a worker process is started with."""

from __future__ import annotations

from argparse import Namespace

from msgspec import Struct


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """Which application, for which server, and how much of it at a time."""

    #: MODULE:APP.
    app: str
    concurrency: int = 1
    #: After so many Jobs the process is replaced; 0 is never.
    max_jobs: int = 0
    queues: tuple[str, ...] = ()
    #: How long what runs may take to end when the worker is to end; None is for ever.
    drain_timeout_s: float | None = None
    #: What was typed about the server.
    server: str | None = None
    token_file: str | None = None
    ca_file: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    insecure_token: bool = False

    @property
    def connection(self) -> Namespace:
        """What was typed, for whoever finds the server."""
        return Namespace(
            server=self.server,
            token_file=self.token_file,
            ca_file=self.ca_file,
            context=self.context,
            kubeconfig=self.kubeconfig,
            insecure_token=self.insecure_token,
        )
