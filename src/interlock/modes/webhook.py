"""The webhook of a controller: its server, its certificate, and who is told to trust it."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Callable, Sequence

from msgspec import Struct

from interlock.api.server import HttpServer, bind
from interlock.control.clock import Clock, pause
from interlock.errors import ForbiddenError, InterlockError
from interlock.kube.client.api_client import Call, Client
from interlock.kube.install.installation import Installation
from interlock.kube.webhook.app import WebhookApp
from interlock.kube.webhook.certificate import Place, ServingCertificate, service_names
from interlock.modes.settings import Listen
from interlock.resources.metadata import Key

_LOG = logging.getLogger("interlock.webhook")
#: A look that failed is repeated after this, for nobody is ready before the first; and as soon
#: does a new leader say whom to trust.
_SOON_S = 2.0
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class WebhookSettings(Struct, frozen=True, kw_only=True):
    """How to run the webhook."""

    listen: Listen
    #: Where the controller is installed, and for whom.
    install: Installation
    #: Names and addresses by which the API server reaches it, beside those of the service.
    names: frozenset[str] = frozenset()
    #: The Secret is looked at this often: another replica may have renewed what is in it.
    look_every_s: float = 30.0


class Webhook:
    """Serves the webhook on every replica; the leader has the API server trust it.

    Nothing here is needed for Jobs to run, so nothing here stops the controller: what fails is
    told, and tried again.
    """

    def __init__(
        self, client: Client, clock: Clock, settings: WebhookSettings, leads: Callable[[], bool]
    ) -> None:
        install = settings.install
        self._client = client
        self._clock = clock
        self._settings = settings
        self._leads = leads
        self._controllers: set[str] = {install.account}
        self._is_known = False
        self._told = ""
        #: The certificate; its `context` serves the controller's own API too.
        self.certificate = ServingCertificate(
            client,
            clock,
            Place(
                namespace=install.namespace,
                secret=install.secret,
                configuration=install.cluster_name,
                names=service_names(install.name, install.namespace) | settings.names,
            ),
        )
        self.app = WebhookApp(self._controllers, clock.now, holds=install.adopts)
        self._server: HttpServer | None = None
        self._keeping: asyncio.Task[None] | None = None
        #: Where it listens, once it does.
        self.port = 0

    @property
    def tls(self) -> ssl.SSLContext:
        """For other servers of the same replica; the certificate in it is kept good."""
        return self.certificate.context

    def not_ready(self) -> Sequence[str]:
        """What is not ready yet."""
        if not self.certificate.bundle:
            return ("the webhook has no certificate yet",)
        return () if self._is_known else ("the webhook does not know yet who the controller is",)

    async def start(self) -> None:
        """Begin to listen; there is a certificate once the cluster could be asked for it.

        Raises:
            ListenError: The address cannot be listened on.
        """
        listener = bind(self._settings.listen.host, self._settings.listen.port)
        self.port = listener.getsockname()[1]
        self._server = HttpServer(self.app, listener, self.tls)
        await self._server.start()
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Answer what was asked, and listen no more."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait((self._keeping,))
        if self._server is not None:
            await self._server.stop()

    async def look(self) -> None:
        """Renew what it is time for, and have it trusted.

        Raises:
            InterlockError: Something of that could not be done.
        """
        if not self._is_known:
            self._controllers.add(await _own_name(self._client))
            self._is_known = True
        await self.certificate.look()
        if self._leads():
            await self._publish()

    async def _publish(self) -> None:
        try:
            await self.certificate.publish()
        except ForbiddenError as error:
            # In one namespace there may be no webhook, and then no right to change one.
            _LOG.info("the API server is not told whom to trust: %s", error)

    async def _keep(self) -> None:
        while True:
            wait_s = self._settings.look_every_s
            try:
                await self.look()
                self._told = ""
            except InterlockError as error:
                self._tell(error)
                wait_s = min(wait_s, _SOON_S)
            except Exception:
                _LOG.exception("the webhook's certificate could not be looked at")
            await self._rest(wait_s)

    async def _rest(self, wait_s: float) -> None:
        """Wait; not so long if this replica begins to lead meanwhile, and so has more to do."""
        until = self._clock.monotonic() + wait_s
        led = self._leads()
        while self._clock.monotonic() < until and (led or not self._leads()):
            await pause(self._clock, min(wait_s, _SOON_S))

    def _tell(self, error: InterlockError) -> None:
        """Say what is wrong; once, for it is tried all the time."""
        if str(error) != self._told:
            self._told = str(error)
            _LOG.warning("the webhook's certificate could not be looked at: %s", error)


async def _own_name(client: Client) -> str:
    """Who we are to the API server: outside of a cluster nobody else can say."""
    key = Key("SelfSubjectReview", "", "self")
    body = json.dumps(_REVIEW).encode()
    answer = await client.send(Call(method="POST", path=_WHO, key=key, body=body))
    name: str = json.loads(answer)["status"]["userInfo"]["username"]
    return name
