"""The first contact with a cluster: can it be served, and if not, what is to be done?"""

from __future__ import annotations

import asyncio

from interlock.control.clock import Clock, pause
from interlock.errors import ForbiddenError, UnavailableError
from interlock.kube.client.api_client import Client
from interlock.kube.client.errors import DistrustedError, NotServedError, UnknownCallerError
from interlock.modes.serving import Say
from interlock.modes.settings import SettingsError
from interlock.resources.kinds import KINDS
from interlock.store.contract import Store

INSTALL = "interlock manifests --only crds | kubectl apply -f -"
_GRANT = "interlock manifests --only rbac | kubectl apply -f -"
#: Between two questions, and how long one may take.
_AGAIN_S = 1.0
_PATIENCE_S = 15.0


class Contact:
    """Asks until the cluster can be served. What only a person can mend ends the program.

    A server that is away, and kinds that are not installed yet, are waited for: whoever starts
    everything at once cannot do it in the right order.
    """

    def __init__(self, client: Client, store: Store, clock: Clock, say: Say) -> None:
        self._config = client.config
        self._store = store
        self._clock = clock
        self._say = say
        #: What is waited for; empty when nothing is.
        self.waits_for = "the first answer of the cluster"

    async def made(self) -> None:
        """Wait until the cluster can be served.

        Raises:
            SettingsError: It cannot be, as long as nobody changes something.
        """
        while True:
            problem = await self._look()
            if problem == "":
                break
            if problem != self.waits_for:
                self._say(f"waiting: {problem}")
            self.waits_for = problem
            await pause(self._clock, _AGAIN_S)
        self.waits_for = ""

    async def _look(self) -> str:
        """What must be waited for."""
        server = f"{self._config.server} ({self._config.source})"
        try:
            async with asyncio.timeout(_PATIENCE_S):
                # What a controller must be able to read before it does anything.
                for kind in KINDS.values():
                    if kind.is_ours:
                        await self._store.list(kind.name, limit=1)
        except NotServedError:
            return f"the cluster does not know our kinds yet; install them with: {INSTALL}"
        except (DistrustedError, UnknownCallerError) as error:
            hint = "check the certificates, the token and the user of that context"
            raise SettingsError(str(error), hint) from error
        except ForbiddenError as error:
            raise SettingsError(f"{server} refuses: {error}", f"grant it: {_GRANT}") from error
        except UnavailableError as error:
            return str(error)
        except TimeoutError:
            return f"{server} does not answer within {_PATIENCE_S:g} s"
        return ""
