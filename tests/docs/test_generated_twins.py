"""The client with threads is on disk as the one with an event loop says it."""

from __future__ import annotations

import runpy
from inspect import getmembers, iscoroutinefunction, signature
from pathlib import Path

import pytest

from interlock import AsyncClient, Client
from interlock.sdk.async_handle import AsyncHandle
from interlock.sdk.handle import Handle

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "write_sync.py"))
MODULES: dict[str, str] = TOOL["modules"]()


@pytest.mark.parametrize("name", list(MODULES))
def test_a_twin_is_up_to_date(name: str) -> None:
    written = (ROOT / "src/interlock/sdk" / name).read_text("utf-8")

    assert written == MODULES[name], f"{name} is out of date: run `make docs`"


@pytest.mark.parametrize(
    ("asynchronous", "plain"), [(AsyncClient, Client), (AsyncHandle, Handle)], ids=str
)
def test_twins_offer_the_same(asynchronous: type, plain: type) -> None:
    def offered(of: type) -> dict[str, list[str]]:
        methods = {name: made for name, made in getmembers(of, callable) if name[0] != "_"}
        assert methods
        return {name: list(signature(made).parameters) for name, made in methods.items()}

    assert offered(asynchronous) == offered(plain)
    assert not any(iscoroutinefunction(made) for _, made in getmembers(plain))


def test_what_cannot_be_said_without_an_event_loop_is_refused() -> None:
    text = '"""Twin."""\n\nfrom __future__ import annotations\n\nx = [1 async for y in z]\n'
    with pytest.raises(AssertionError, match="there is no word for that"):
        TOOL["without_loop"](text.replace("async for", "async  for"), "Twin.")
