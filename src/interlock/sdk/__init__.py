"""The SDK: operations written as Python functions, and the worker program that runs them.

An `App` declares steps, their undos, and operations. Asked for, an operation becomes a Job; a
worker (`interlock worker MODULE:APP`) turns it into steps once, and then runs each that the server
gives it. What is retried, undone or over is never decided here.
"""

from interlock.sdk.app import App
from interlock.sdk.context import Context
from interlock.sdk.options import Retry, RollBack

__all__ = ["App", "Context", "Retry", "RollBack"]
