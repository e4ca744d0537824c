"""Readiness: what has to be well for a server to be ready, and how that is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from interlock.api.answers import Answer


class Check(Struct, frozen=True):
    """One thing that has to be well."""

    name: str
    #: What is wrong with it; empty when nothing is.
    trouble: str = ""


#: Tells how everything is now, from what is known: nobody is asked, and nothing is waited for.
Checks = Callable[[], Sequence[Check]]


def health_answer(name: str, checks: Sequence[Check], *, verbose: bool) -> Answer:
    """The answer for a path of health; with `verbose` it names every check, as Kubernetes does."""
    failed = [check for check in checks if check.trouble]
    if verbose:
        lines = [_line(check) for check in checks]
        lines.append(f"{name} check {'failed' if failed else 'passed'}")
    elif failed:
        lines = [f"not ready: {check.trouble}" for check in failed]
    else:
        return _text("ok", 200)
    return _text("".join(f"{line}\n" for line in lines), 503 if failed else 200)


def _line(check: Check) -> str:
    return f"[-]{check.name} failed: {check.trouble}" if check.trouble else f"[+]{check.name} ok"


def _text(body: str, status: int) -> Answer:
    return Answer(status, body.encode(), b"text/plain; charset=utf-8")
