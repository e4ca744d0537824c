"""Hooks for tools/check_openapi.py: answers that go on for ever are not asked for."""

from __future__ import annotations

from typing import Any

import schemathesis

_TRUE = (True, "true", "1", "True")


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: Any) -> None:  # noqa: ARG001
    """Nobody watches or follows: what comes then is a stream, of which no schema tells."""
    for name in ("watch", "follow"):
        if case.query and case.query.get(name) in _TRUE:
            case.query[name] = "false"
