"""The session of a command: the server, the namespace, and the terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from interlock.client.api import Api
    from interlock.client.reports import Reports
    from interlock.client.target import Target
    from interlock.modes.cli.output.formats import Terminal


class Session:
    """One command being carried out. Everything in it is made when it is first needed."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self._target: Target | None = None
        self._api: Api | None = None
        self._terminal: Terminal | None = None
        self._reports: Reports | None = None
        self._on_cluster: bool | None = None

    @property
    def target(self) -> Target:
        """Where the server is."""
        if self._target is None:
            from interlock.client.target import find_target

            self._target = find_target(self._args)
        return self._target

    @property
    def api(self) -> Api:
        """The server."""
        if self._api is None:
            from interlock.client.api import Api

            self._api = Api(self.target)
        return self._api

    @property
    def on_cluster(self) -> bool:
        """Whether the server is a cluster's. A context may name a server of our own too."""
        if self._on_cluster is None:
            self._on_cluster = self.target.by_context and "+interlock." not in str(
                self.api.call("GET", "/version").get("gitVersion")
            )
        return self._on_cluster

    @property
    def reports(self) -> Reports:
        """Whoever answers questions: our server, or this program from what a cluster stores."""
        if self._reports is None:
            if self.on_cluster:
                from interlock.client.cluster.reports import ClusterReports

                self._reports = ClusterReports(self.api)
            else:
                from interlock.client.reports import ServerReports

                self._reports = ServerReports(self.api)
        return self._reports

    @property
    def terminal(self) -> Terminal:
        """Where answers are printed."""
        if self._terminal is None:
            from interlock.modes.cli.output.formats import Terminal

            self._terminal = Terminal()
        return self._terminal

    @property
    def namespace(self) -> str:
        """The namespace that was asked for, else the context's, else `default`."""
        return getattr(self._args, "namespace", None) or self.target.namespace or "default"

    @property
    def namespace_or_all(self) -> str | None:
        """None when every namespace was asked for."""
        return None if getattr(self._args, "all_namespaces", False) else self.namespace

    def close(self) -> None:
        """Let connections go."""
        if self._api is not None:
            self._api.close()
