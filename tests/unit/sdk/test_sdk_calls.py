"""A function is called with typed arguments, and what it returns is put into JSON, or refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from interlock import App, Context, Retry, RollBack
from interlock.resources.steps import PythonSpec, Target
from interlock.resources.work import PythonCall
from interlock.sdk.app_errors import (
    ArgumentsError,
    DeclarationError,
    NotJsonError,
    StepCallError,
    StepCancelled,
)
from interlock.sdk.calling import bind, error_of
from interlock.sdk.errors import OperationFailed
from interlock.sdk.local import LocalFailure


@dataclass
class Gear:
    id: str
    since: date


def call(app: App, function: str, **args: Any) -> str:
    bound = bind(app, function, PythonCall.RUN, args, Context(step="dns"))
    return bound.read(bound.start()).returned


def undo(app: App, function: str, results: dict[str, str] | None = None, **args: Any) -> None:
    ctx = Context(step="reserve", results=results)
    bound = bind(app, function, PythonCall.UNDO, args, ctx)
    bound.read(bound.start())


def test_arguments_come_as_the_types_of_the_parameters() -> None:
    app = App()

    @app.step()
    def dns(ctx: Context, gear: Gear, names: list[str], *, ttl: int = 60) -> Any:
        assert ctx.args["gear"] is gear
        return [gear.since.year, names, ttl]

    told = call(app, "dns", gear={"id": "g", "since": "2026-01-05"}, names=["a"])
    assert told == '[2026,["a"],60]'


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"gear": {"id": 3, "since": "2026-01-05"}}, r"step dns: gear\.id: expected str, got int"),
        ({"gear": {"id": "g"}}, "gear: object missing required field since"),
        ({"gear": None}, "gear: expected object, got null"),
        ({}, "gear: is missing"),
        ({"gear": None, "gaer": 1}, 'gaer: there is no such parameter; did you mean "gear"'),
    ],
)
def test_what_does_not_validate_is_told_with_its_path(args: dict[str, Any], told: str) -> None:
    app = App()

    @app.step()
    def dns(ctx: Context, gear: Gear) -> None:
        raise AssertionError("it is not called")

    with pytest.raises(ArgumentsError, match=told):
        call(app, "dns", **args)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (object(), r"what dns returned \(object\) cannot be written as JSON"),
        (float("nan"), "a number that is none"),
        ("x" * 5_000, "is 5002 bytes as JSON, and 4096 are kept: store it"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_not_lost(returned: Any, told: str) -> None:
    app = App()

    @app.step()
    def dns(ctx: Context) -> Any:
        return returned

    with pytest.raises(NotJsonError, match=told):
        call(app, "dns")


def test_nothing_returned_is_nothing() -> None:
    app = App()

    @app.step()
    def dns(ctx: Context) -> None: ...

    assert call(app, "dns") == ""


def test_an_undo_gets_what_it_asks_for() -> None:
    app, got = App(), list[Any]()

    @app.step()
    def reserve(ctx: Context, size: str, zone: str) -> Gear:
        return Gear("g", date(2026, 1, 5))

    @reserve.undo
    def release(ctx: Context, gear: Gear | None, size: str) -> None:
        got.append((gear, size))

    undo(app, "release", {"reserve": '{"id":"g","since":"2026-01-05"}'}, size="small")
    undo(app, "release", {}, size="small")
    assert got == [(Gear("g", date(2026, 1, 5)), "small"), (None, "small")]
    with pytest.raises(DeclarationError, match="which is what step reserve returned"):
        undo(app, "release", {"reserve": "7"}, size="small")


@pytest.mark.parametrize("kind", list(PythonCall))
def test_an_unknown_function_is_told(kind: PythonCall) -> None:
    app = App()

    @app.step()
    def reserve(ctx: Context) -> None: ...

    with pytest.raises(DeclarationError, match='reserv in the application; did you mean "reserve"'):
        bind(app, "reserv", kind, {}, Context())


def test_what_an_attempt_is_told() -> None:
    ctx = Context(
        step="dns",
        target="applications/shop",
        fences={"target/applications/shop": 7, "db": 3},
        results={"reserve": '{"id":"g"}', "none": ""},
    )
    assert ctx.fence == 7
    assert ctx.results == {"reserve": {"id": "g"}}
    assert Context().fence == 0
    ctx.check()
    ctx.cancelled.set()
    with pytest.raises(StepCancelled, match="dns of job was told to stop"):
        ctx.check()
    with pytest.raises(ValueError, match="expected 0 to 100"):
        ctx.report(101)


def test_an_error_is_told_in_a_line() -> None:
    assert error_of(ValueError("no\n such zone")) == "ValueError: no such zone"
    assert error_of(KeyError()) == "KeyError"
    assert len(error_of(ValueError("x" * 9_000))) == 2_000


# Run locally


class Recorder:
    """What steps did, and which of them fail how often."""

    def __init__(self, **fails: int) -> None:
        self.fails = fails

    def fail(self, name: str) -> None:
        left = self.fails.get(name, 0)
        self.fails[name] = left - 1
        if left > 0:
            raise RuntimeError(f"{name} is out")


def a_broker(fails: Recorder) -> tuple[App, Any]:
    app = App()

    @app.step(retries=Retry(limit=2, delay=10))
    def reserve(ctx: Context, size: str) -> str:
        fails.fail("reserve")
        ctx.report(50, "half")
        return f"gear-{ctx.fence}"

    @reserve.undo
    def release(ctx: Context, gear: str | None) -> None:
        fails.fail("release")
        ctx.log(f"released {gear}")

    @app.step(retries=Retry(limit=1), before_retry=RollBack([reserve]))
    async def dns(ctx: Context, gear: str) -> str:
        fails.fail("dns")
        return f"{gear}.example"

    @app.operation(target="applications/{application}")
    def create(application: str) -> Any:
        return {"name": dns(reserve("small"))}

    return app, create


def test_an_operation_is_run_locally() -> None:
    app, create = a_broker(Recorder(reserve=2))
    run = app.run_locally(create, application="shop")
    assert run.result == {"name": "gear-1.example"}
    failed = "reserve failed: RuntimeError: reserve is out"
    assert run.history == (failed, failed, "reserve", "dns")
    assert run.waited.total_seconds() == 10
    assert run.reports == [("reserve", 50.0, "half")]


def test_what_a_step_demands_is_undone_before_its_retry() -> None:
    app, create = a_broker(Recorder(dns=1))
    run = app.run_locally(create, application="shop")
    assert run.ok
    assert run.history == (
        *("reserve", "dns failed: RuntimeError: dns is out", "undo reserve", "reserve", "dns"),
    )


def test_what_was_done_is_undone() -> None:
    app, create = a_broker(Recorder(dns=9))
    run = app.run_locally(create, application="shop")
    assert not run.ok
    assert run.history[-1] == "undo reserve"
    assert run.log.endswith("released gear-1\n")
    with pytest.raises(OperationFailed, match="dns is out") as error:
        _ = run.result
    assert error.value.completion_state == "failed"
    assert error.value.record.error == "dns: failed: RuntimeError: dns is out"
    assert isinstance(error.value, LocalFailure)
    assert not error.value.stuck


def test_what_cannot_be_undone_is_stuck() -> None:
    app, create = a_broker(Recorder(reserve=9, release=9))
    run = app.run_locally(create, application="shop")
    assert run.stuck
    assert "undo of reserve is out of retries" in run.error


def test_parts_of_an_operation_are_asked_for_once_its_steps_are_done() -> None:
    app, _ = a_broker(Recorder())

    @app.operation(target="applications/{application}", title="Move '{application}'", queue="slow")
    def move(application: str) -> None: ...

    @app.operation(target="domains/{domain}")
    def rename(domain: str) -> None:
        for name in ("shop", "blog"):
            app.child(move, application=name)

    run = app.run_locally(rename, domain="acme")
    assert run.ok
    assert [child.target for child in run.children] == [
        Target(path="applications/shop"),
        Target(path="applications/blog"),
    ]
    assert run.children[0].python == PythonSpec(
        function="move", args={"application": "shop"}, queue="slow"
    )
    assert run.children[0].title == "Move 'shop'"


def test_parts_are_refused_like_requests_and_outside_of_operations() -> None:
    app, create = a_broker(Recorder())
    with pytest.raises(StepCallError, match="there is none here"):
        app.child(create, application="shop")

    @app.operation(target="domains/{domain}")
    def rename(domain: str) -> None:
        app.child(create, application="a/b")

    with pytest.raises(ArgumentsError, match="is a part of the target"):
        app.run_locally(rename, domain="acme")
