"""What is declared wrongly is refused at once, and what is asked for wrongly before it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import interlock
from interlock import App, Context, Retry, RollBack
from interlock.findings import Findings
from interlock.resources.checks.operations import check_operation
from interlock.resources.codec import from_builtins
from interlock.resources.job import JobSpec
from interlock.sdk.app_errors import ArgumentsError, DeclarationError, StepCallError


def plain(ctx: Context, size: str) -> str:
    return size


def no_context(size: str) -> str:
    return size


def starred(ctx: Context, *sizes: str) -> None: ...


def two_results(ctx: Context, one: str, two: str) -> None: ...


def unknown_type(ctx: Context, size: App) -> None: ...


async def async_operation(size: str) -> None: ...


def declare_undo(app: App, function: Callable[..., Any], *, twice: bool = False) -> None:
    step = app.step(name="step")(plain)
    step.undo(function)
    if twice:
        step.undo(two_results)


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda app: app.step(no_context), "expected ctx as its first parameter"),
        (lambda app: app.step(starred), "parameter .sizes"),
        (lambda app: app.step(name="1")(plain), "expected a name"),
        (lambda app: [app.step(plain), app.step(plain)], "there is a step of that name already"),
        (lambda app: app.step(before_retry="Never")(plain), "before_retry: 'Never': expected"),
        (lambda app: app.step(retries=3)(plain), r"retries: 3: expected such as Retry"),
        (lambda _: Retry(limit=-1), "expected 0 to 1000"),
        (lambda _: Retry(delay="soon"), "Retry.delay: 'soon'"),
        (lambda _: RollBack([]), "expected a list of steps"),
        (lambda app: app.step(timeout=0)(plain), "more than no time"),
        (
            lambda app: app.step(irreversible=True, before_retry="RollBackFirst")(plain),
            "never taken back",
        ),
        (lambda app: declare_undo(app, no_context), "expected ctx as its first parameter"),
        (lambda app: declare_undo(app, two_results), "one, two are no parameters of step step"),
        (lambda app: declare_undo(app, plain, twice=True), "has an undo already: plain"),
        (lambda app: app.operation(target="a/{nane}")(no_context), "there is no parameter nane"),
        (lambda app: app.operation(title="{size.x}")(no_context), "expected the names of"),
        (lambda app: app.operation(retries=Retry())(no_context), "give it to the steps"),
        (lambda app: app.operation()(async_operation), "write it with def"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(
    declare: Callable[[Any], object], told: str
) -> None:
    with pytest.raises(DeclarationError, match=told):
        declare(App())


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda app: app.step(before_retry="RollBackFirst")(plain), "nothing without an undo"),
        (lambda app: app.step(undo_retries=Retry(limit=1))(plain), "nothing without an undo"),
        (lambda app: app.step(unknown_type), "App cannot be read from JSON"),
    ],
)
def test_what_only_the_whole_shows_is_refused_when_it_is_loaded(
    declare: Callable[[Any], object], told: str
) -> None:
    app = App()
    declare(app)
    with pytest.raises(DeclarationError, match=told):
        app.check()


def a_broker() -> tuple[App, Any]:
    app = App()

    @app.operation(
        target="domains/{domain}/applications/{application}",
        title="Create application '{application}'",
        type="create_app",
        owner="{domain}",
        queue="slow",
        max_interruptions=2,
        timeout=600,
    )
    def create_application(domain: str, application: str, size: int = 1) -> str:
        return application

    return app, create_application


def test_a_request_is_the_job_that_asks_for_it() -> None:
    app, create = a_broker()
    request = app.request(create, "acme", application="shop")
    assert request == {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"generateName": "create-application-"},
        "spec": {
            "python": {
                "function": "create_application",
                "args": {"domain": "acme", "application": "shop", "size": 1},
                "queue": "slow",
            },
            "type": "create_app",
            "target": {"path": "domains/acme/applications/shop"},
            "title": "Create application 'shop'",
            "owner": "acme",
            "stepsAtOnce": 10,
            "maxInterruptions": 2,
            "timeout": "10m",
        },
    }
    problems = Findings()
    check_operation(from_builtins(request["spec"], JobSpec), problems)
    assert not problems


def test_one_request_may_differ() -> None:
    app, create = a_broker()
    mine = create.options(idempotency_key="k", owner="ana", queue="", parent="p", name="shop-1")
    request = app.request(mine, "acme", "shop")
    assert request["metadata"] == {"name": "shop-1"}
    assert request["spec"]["idempotencyKey"] == "k"
    assert request["spec"]["parent"] == "p"
    assert request["spec"]["owner"] == "ana"
    assert "queue" not in request["spec"]["python"]


class Sent:
    """Takes requests as a client does."""

    def __init__(self) -> None:
        self.requests: list[tuple[Any, str | None]] = []
        self.handle: Any = object()

    def submit(self, manifest: Any, *, idempotency_key: str | None = None) -> Any:
        self.requests.append((manifest, idempotency_key))
        return self.handle


def test_a_request_is_sent_with_its_key() -> None:
    app, create = a_broker()
    app.client = sent = Sent()
    assert app.submit(create.options(idempotency_key="k"), "acme", "shop") is sent.handle
    ((manifest, key),) = sent.requests
    assert key == "k"
    assert manifest["spec"]["target"]["path"] == "domains/acme/applications/shop"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"domain": "acme"}, "application: is missing"),
        ({"domain": "acme", "application": 3}, "application: expected str, got int"),
        ({"domain": "a", "application": "b", "sise": 1}, "there is no such parameter; did you mea"),
        ({"domain": "a", "application": "b/c"}, "application: is a part of the target"),
        ({"domain": "a", "application": ""}, "application: is a part of the target"),
        ({"domain": "..", "application": "b"}, "domain: is a part of the target"),
        ({"domain": "a", "application": "b" * 200}, "target: expected names"),
        ({"domain": "a", "application": object()}, "application: application cannot be written"),
        ({"domain": "a", "application": "b", "size": "x"}, "size: expected int, got str"),
    ],
)
def test_nothing_is_sent_of_a_bad_request(args: dict[str, Any], told: str) -> None:
    app, create = a_broker()
    app.client = sent = Sent()
    with pytest.raises(ArgumentsError, match=told):
        app.submit(create, **args)
    assert sent.requests == []


def test_an_operation_is_not_called_directly() -> None:
    _, create = a_broker()
    with pytest.raises(StepCallError, match=r"submit it with app\.submit"):
        create("acme", "shop")


def test_unknown_exports_are_told() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Apps'"):
        _ = interlock.Apps  # type: ignore[attr-defined]
    assert {"App", "Client", "Retry"} <= set(dir(interlock))
