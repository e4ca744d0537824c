"""The server's door: the Kubernetes-shaped API over a store, for any client that speaks it.

It owns what a request may say and how it is answered: paths, forms, options, refusals, who may
ask. It never decides anything about a Job and never starts work; it reads and writes the store.
"""

from interlock.api.app import ApiApp
from interlock.api.security import Security, is_loopback, read_tokens

__all__ = ["ApiApp", "Security", "is_loopback", "read_tokens"]
