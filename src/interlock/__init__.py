"""Interlock: one control plane for jobs that must run when told, only when allowed, never twice."""

__version__ = "0.1.0"

#: What people import from here, and where it is: read when it is first asked for, so that the
#: command line starts without it. Type checkers read `__init__.pyi`.
_EXPORTS = {
    "App": "interlock.sdk.app",
    "Client": "interlock.sdk.client",
    "AsyncClient": "interlock.sdk.async_client",
    "Context": "interlock.sdk.context",
    "Retry": "interlock.sdk.options",
    "RollBack": "interlock.sdk.options",
}


def __getattr__(name: str) -> object:
    place = _EXPORTS.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
