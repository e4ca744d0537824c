"""An operation's function is run once, and the steps that it calls are noted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from interlock.resources.references import resolve
from interlock.resources.steps import Elaboration, Step
from interlock.resources.work import PythonCall
from interlock.sdk.app import App
from interlock.sdk.app_errors import ElaborationError, NotJsonError, StepCallError
from interlock.sdk.calling import bind
from interlock.sdk.context import Context
from interlock.sdk.declared import StepFunction
from interlock.sdk.options import Retry, RollBack

#: Steps that any of these operations may call.
Steps = dict[str, StepFunction[..., Any]]


def elaborate(app: App, **args: Any) -> Elaboration:
    """What a worker makes of a request for operation `op`."""
    bound = bind(app, "op", PythonCall.ELABORATE, args, Context())
    made = bound.read(bound.start()).elaboration
    assert made is not None
    return made


def an_app(*names: str) -> tuple[App, Steps]:
    app, made = App(), {}
    for name in names:

        def step(ctx: Context, value: Any = None, other: Any = None) -> str:
            raise AssertionError("a step does nothing while steps are named")

        made[name] = app.step(name=name)(step)
    return app, made


def needs(made: Elaboration) -> dict[str, tuple[str, ...] | None]:
    return {step.name: step.needs for step in made.steps}


def args_of(step: Step) -> dict[str, Any]:
    assert step.run.python is not None
    return step.run.python.args


def test_each_step_needs_the_one_before_it() -> None:
    app, s = an_app("a", "b")

    @app.operation()
    def op() -> None:
        s["a"]()
        s["b"]()
        s["a"]()

    assert needs(elaborate(app)) == {"a": (), "b": ("a",), "a-2": ("b",)}


def test_what_a_step_returns_is_passed_on_as_a_reference() -> None:
    app, s = an_app("a", "b")

    @app.operation()
    def op(name: str) -> Any:
        first = s["a"](name)
        return {"of b": s["b"]([first, {"inside": first}], other=name)}

    made = elaborate(app, name="x")
    assert args_of(made.steps[0]) == {"value": "x", "other": None}
    one = {"$result": "a"}
    assert args_of(made.steps[1]) == {"value": [one, {"inside": one}], "other": "x"}
    assert made.returns == '{"of b":{"$result":"b"}}'


@pytest.mark.parametrize(
    "value", [{"$result": "a"}, {"$literal": 1}, {"$literal": {"$result": "a"}}, [{"$result": ""}]]
)
def test_a_value_that_looks_like_a_reference_comes_as_it_is(value: Any) -> None:
    app, s = an_app("a")

    @app.operation()
    def op() -> None:
        s["a"](value)

    assert resolve(args_of(elaborate(app).steps[0]), {})["value"] == value


def test_a_reference_inside_what_looks_like_one_is_refused() -> None:
    app, s = an_app("a", "b")

    @app.operation()
    def op() -> None:
        s["b"]({"$literal": s["a"]()})

    with pytest.raises(ElaborationError, match=r"b: value.*give it another name"):
        elaborate(app)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda gear: gear.size, id="an attribute"),
        pytest.param(lambda gear: gear["size"], id="an item"),
        pytest.param(lambda gear: f"gear {gear}", id="in a text"),
        pytest.param(lambda gear: 1 if gear else 2, id="a condition"),
        pytest.param(list, id="a loop"),
        pytest.param(lambda gear: gear == "x", id="a comparison"),
        pytest.param(lambda gear: gear + "x", id="an addition"),
        pytest.param(lambda gear: {gear: 1}, id="a key"),
    ],
)
def test_what_a_step_will_return_cannot_be_looked_into(use: Any) -> None:
    app, s = an_app("reserve")

    @app.operation()
    def op() -> Any:
        return use(s["reserve"]())

    with pytest.raises(ElaborationError, match=r"what step reserve returns is not known yet.*pass"):
        elaborate(app)


def test_steps_side_by_side() -> None:
    app, s = an_app("a", "b", "c", "d")

    @app.operation()
    def op() -> None:
        s["a"]()
        with app.parallel():
            first = s["b"]()
            s["c"](first)
            with app.in_order():
                s["d"]()
                s["d"]()
        s["a"]()

    assert needs(elaborate(app)) == {
        "a": (),
        "b": ("a",),
        "c": ("a", "b"),
        "d": ("a",),
        "d-2": ("d",),
        "a-2": ("b", "c", "d-2"),
    }


def test_what_is_named_is_needed_and_whose_result_is_used_too() -> None:
    app, s = an_app("a", "b", "c")

    @app.operation()
    def op() -> None:
        first = s["a"]()
        s["b"].options(needs=[])()
        s["c"].options(needs=["b"], name="last")(first)

    assert needs(elaborate(app)) == {"a": (), "b": (), "last": ("b", "a")}


def test_options_are_stored_with_the_step() -> None:
    app = App()

    @app.step()
    def reserve(ctx: Context, size: str) -> str:
        return size

    @reserve.undo
    def release(ctx: Context, size: str, gear: str | None) -> None: ...

    @app.step(
        retries=Retry(limit=3, delay=5),
        undo_retries=Retry(limit=1, delay="2m"),
        before_retry=RollBack([reserve]),
        undo_covered_by=reserve,
        timeout=90,
    )
    def dns(ctx: Context, name: str, other: str) -> None: ...

    @dns.undo
    def undo_dns(ctx: Context, name: str) -> None: ...

    @app.operation()
    def op() -> None:
        reserve("small")
        dns("x", "y")

    first, second = elaborate(app).steps
    assert first.undo is not None
    assert first.undo.python is not None
    assert (first.undo.python.function, first.undo.python.args) == ("release", {"size": "small"})
    assert (second.retries.limit, str(second.retries.delay)) == (3, "5s")
    assert second.undo_retries is not None
    assert str(second.undo_retries.delay) == "2m"
    assert (second.before_retry.value, second.roll_back) == ("RollBack", ("reserve",))
    assert second.undo_covered_by == "reserve"
    assert str(second.timeout) == "1m30s"
    assert second.undo is not None
    assert second.undo.python is not None
    assert second.undo.python.args == {"name": "x"}


def test_an_operation_that_does_the_work_itself_is_its_only_step() -> None:
    app = App()

    @app.operation(retries=Retry(limit=2), timeout="90s")
    def op(ctx: Context, image: str, width: int = 100) -> str:
        raise AssertionError("it is not run to find out its steps")

    made = elaborate(app, image="x")
    (step,) = made.steps
    assert step.name == "op"
    assert step.retries.limit == 2
    assert str(step.timeout) == "90s"
    assert args_of(step) == {"image": "x", "width": 100}
    assert made.returns == '{"$result":"op"}'


def test_an_operation_in_another_one_adds_its_steps() -> None:
    app, s = an_app("a", "b")

    @app.operation()
    def inner(name: str) -> Any:
        return s["a"](name)

    @app.operation()
    def op() -> None:
        s["b"](inner("x"))

    made = elaborate(app)
    assert needs(made) == {"a": (), "b": ("a",)}
    assert args_of(made.steps[1])["value"] == {"$result": "a"}


@dataclass
class Size:
    name: str
    since: date


def test_arguments_are_typed_and_stored_as_json() -> None:
    app, s = an_app("a")

    @app.operation()
    def op(size: Size) -> None:
        assert size.since == date(2026, 1, 5)
        s["a"](size)

    made = elaborate(app, size={"name": "small", "since": "2026-01-05"})
    assert args_of(made.steps[0])["value"] == {"name": "small", "since": "2026-01-05"}


@pytest.mark.parametrize("value", [object(), float("nan"), {"a": [float("inf")]}])
def test_what_is_no_json_is_refused_with_the_steps_name(value: Any) -> None:
    app, s = an_app("a")

    @app.operation()
    def op() -> None:
        s["a"](value)

    with pytest.raises(NotJsonError, match="a: value cannot be written as JSON"):
        elaborate(app)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(
            lambda s: [s["a"].options(name="x")(), s["a"].options(name="x")()],
            "two steps have the name 'x'",
            id="names that collide",
        ),
        pytest.param(
            lambda s: s["a"].options(needs=["b"])(), "no step 'b' was called", id="unknown needs"
        ),
        pytest.param(
            lambda s: [s["a"]() for _ in range(101)], "more than 100 steps", id="too many"
        ),
        pytest.param(lambda s: s["a"](value="x" * (3 << 20)), "bytes as JSON", id="too long"),
        pytest.param(
            lambda s: s["a"].options(name="no name")(), r"steps\[0\].name", id="a bad name"
        ),
    ],
)
def test_mistakes_are_told(body: Any, told: str) -> None:
    app, s = an_app("a")

    @app.operation()
    def op() -> None:
        body(s)

    with pytest.raises(ElaborationError, match=told):
        elaborate(app)


def test_a_step_is_called_in_operations_alone() -> None:
    app, s = an_app("a")
    with pytest.raises(StepCallError, match=r"outside of an operation.*a\.call\(ctx"):
        s["a"]()
    with pytest.raises(StepCallError, match="is for operations"):
        app.parallel()


def test_what_another_run_noted_is_refused() -> None:
    app, s = an_app("a", "b")
    kept: list[Any] = []

    @app.operation()
    def op() -> None:
        if kept:
            s["b"](*kept)
        else:
            kept.append(s["a"]())

    elaborate(app)
    with pytest.raises(ElaborationError, match="of another operation, or of an earlier run"):
        elaborate(app)
