from interlock.sdk.app import App as App
from interlock.sdk.async_client import AsyncClient as AsyncClient
from interlock.sdk.client import Client as Client
from interlock.sdk.context import Context as Context
from interlock.sdk.options import Retry as Retry
from interlock.sdk.options import RollBack as RollBack

__version__: str
