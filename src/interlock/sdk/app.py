"""An application: the steps and operations that a worker loads, and others submit."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

from interlock.sdk.app_errors import DeclarationError, StepCallError
from interlock.sdk.context import Context
from interlock.sdk.declared import (
    OperationDeclaration,
    OperationFunction,
    StepDeclaration,
    StepFunction,
    Undo,
    function_name,
)
from interlock.sdk.local import LocalRun, play
from interlock.sdk.options import Retry, RollBack, StepOptions, Time
from interlock.sdk.recording import recording
from interlock.sdk.requests import manifest_of

if TYPE_CHECKING:
    from interlock.sdk.handle import Handle

P = ParamSpec("P")
T = TypeVar("T")


class Submits(Protocol):
    """What takes requests: `interlock.Client`."""

    def submit(self, manifest: Mapping[str, Any], *, idempotency_key: str | None = None) -> Handle:
        """Make a Job durable; returns its handle."""


class StepMaker(Protocol):
    """Makes a step of a function whose first parameter is ctx."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], /
    ) -> StepFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], T], /) -> StepFunction[P, T]: ...


class OperationMaker(Protocol):
    """Makes an operation of a function; a context is no argument of a request."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], T], /
    ) -> OperationFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> OperationFunction[P, T]: ...


class App:
    """The steps and operations of an application, by their names."""

    def __init__(self, name: str = "", *, client: Submits | None = None) -> None:
        self.name = name
        self._client = client
        self.operations: dict[str, OperationDeclaration] = {}
        self.steps: dict[str, StepDeclaration] = {}
        #: Undos, each with the step that it undoes.
        self.undos: dict[str, tuple[Undo, StepDeclaration]] = {}

    # Declaring

    @overload
    def step(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], /
    ) -> StepFunction[P, T]: ...
    @overload
    def step(self, function: Callable[Concatenate[Any, P], T], /) -> StepFunction[P, T]: ...
    @overload
    def step(
        self,
        *,
        name: str | None = None,
        retries: Retry = ...,
        undo_retries: Retry | None = None,
        before_retry: Literal["AsIs", "RollBackFirst"] | RollBack = "AsIs",
        irreversible: bool = False,
        undo_covered_by: str | StepFunction[..., Any] | None = None,
        timeout: Time | None = None,
    ) -> StepMaker: ...
    def step(
        self,
        function: Callable[..., Any] | None = None,
        **given: Any,
    ) -> Any:
        """Declare a step: `@app.step` or `@app.step(retries=Retry(limit=3, delay=5))`."""
        name = given.pop("name", None)
        options = StepOptions(**given)

        def declare(function: Callable[..., Any]) -> StepFunction[..., Any]:
            called = function_name(name, function, "step")
            declared = StepDeclaration(function, called, options)
            self._refuse_twice(called, "step")
            self.steps[called] = declared
            return StepFunction(self, declared)

        return declare if function is None else declare(function)

    def operation(
        self,
        *,
        target: str | Mapping[str, str] | None = None,
        title: str = "",
        description: str = "",
        type: str | None = None,
        owner: str = "",
        queue: str = "",
        steps_at_once: int = 10,
        max_interruptions: int | None = None,
        timeout: Time | None = None,
        name: str | None = None,
        **step: Any,
    ) -> OperationMaker:
        """Declare an operation: a function that calls steps.

        In `target`, `title`, `description` and `owner` a name in braces stands for an argument.
        `timeout` is for all of it. A function whose first parameter is ctx does the work itself,
        as the only step of its operation: it takes what `step` takes too (`retries`, ...), and its
        `timeout` is that of one attempt.
        """
        spec = {
            "target": target,
            "title": title,
            "description": description,
            "type": type,
            "owner": owner,
            "queue": queue,
            "steps_at_once": steps_at_once,
            "max_interruptions": max_interruptions,
            "timeout": timeout,
        }

        def declare(function: Callable[..., Any]) -> Any:
            called = function_name(name, function, "operation")
            declared = OperationDeclaration(self, function, called, spec, step)
            self._refuse_twice(called, "operation")
            self.operations[called] = declared
            return OperationFunction(declared)

        return declare

    def declare_undo(self, step: StepDeclaration, function: Callable[..., Any]) -> None:
        """Take in what undoes a step.

        Raises:
            DeclarationError: It has one already, or the function cannot undo it.
        """
        if step.undo is not None:
            raise DeclarationError(
                f"step {step.name} has an undo already: {step.undo.name}, so"
                f" {getattr(function, '__name__', function)} cannot be another"
            )
        undo = Undo(function, step)
        self._refuse_twice(undo.name, "undo")
        step.undo = undo
        self.undos[undo.name] = (undo, step)

    def _refuse_twice(self, name: str, what: str) -> None:
        for others, title in (
            (self.steps, "a step"),
            (self.undos, "an undo"),
            (self.operations, "an operation"),
        ):
            if name in others:
                raise DeclarationError(
                    f"{what} {name}: there is {title} of that name already: give one name="
                )

    def check(self) -> None:
        """Refuse what only the whole application shows.

        Raises:
            DeclarationError: A declaration makes no sense.
        """
        for step in self.steps.values():
            step.check()
        for operation in self.operations.values():
            operation.check()

    @property
    def functions(self) -> tuple[str, ...]:
        """The names that workers offer."""
        return (*self.operations, *self.steps, *self.undos)

    # Within an operation

    def parallel(self) -> AbstractContextManager[None]:
        """The steps called within may run side by side; what comes after waits for all of them.

        One that is given what another one returned waits for that one.
        """
        return self._part(side_by_side=True)

    def in_order(self) -> AbstractContextManager[None]:
        """Within `parallel`: steps that run one after another, beside the others."""
        return self._part(side_by_side=False)

    def _part(self, *, side_by_side: bool) -> AbstractContextManager[None]:
        recorder = recording.get()
        if recorder is None:
            what = "parallel" if side_by_side else "in_order"
            raise StepCallError(f"app.{what}() is for operations: there is none here")
        return recorder.part(side_by_side=side_by_side)

    def child(
        self, operation: OperationFunction[P, Any], /, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Make a part of this operation an operation of its own, on a target of its own.

        All are made once the steps are done, and this operation is over when they are: it succeeded
        when all did, failed when all failed, and is a partial success otherwise.

        Raises:
            ArgumentsError: The operation cannot be called so.
        """
        recorder = recording.get()
        if recorder is None:
            raise StepCallError("app.child() is for operations: there is none here")
        recorder.child(self.request(operation, *args, **kwargs)["spec"])

    # Asking for operations

    def request(
        self, operation: OperationFunction[P, Any], /, *args: P.args, **kwargs: P.kwargs
    ) -> dict[str, Any]:
        """The Job that asks for an operation, its arguments validated; nothing is sent.

        Raises:
            ArgumentsError: The operation cannot be called so.
        """
        return manifest_of(operation.declared, args, kwargs, operation.spec)

    def submit(
        self, operation: OperationFunction[P, Any], /, *args: P.args, **kwargs: P.kwargs
    ) -> Handle:
        """Ask for an operation: it is durable when this returns. Returns its handle.

        Raises:
            ArgumentsError: The operation cannot be called so.
        """
        manifest = self.request(operation, *args, **kwargs)
        key = operation.spec.get("idempotency_key")
        return self.client.submit(manifest, idempotency_key=key)

    @property
    def client(self) -> Submits:
        """Where requests go: the server that the command line would find, unless one is given."""
        if self._client is None:
            made: Submits = import_module("interlock.sdk.client").Client()
            self._client = made
        return self._client

    @client.setter
    def client(self, client: Submits) -> None:
        self._client = client

    def run_locally(
        self, operation: OperationFunction[P, Any], /, *args: P.args, **kwargs: P.kwargs
    ) -> LocalRun:
        """Run an operation here and now, without a server, for tests.

        Its steps are retried and undone as on a server, but nothing waits for the time of a retry,
        and steps that may run side by side run one after another. What comes of it is in the
        answer; `.result` raises `errors.OperationFailed` when it was not done.
        """
        manifest = self.request(operation, *args, **kwargs)
        return play(self, manifest)
