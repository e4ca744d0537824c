"""Calls: a function of an application is run for an attempt, and its outcome put into words."""

from __future__ import annotations

import concurrent.futures
import inspect
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from interlock.findings import did_you_mean
from interlock.resources.steps import Elaboration
from interlock.resources.work import PythonCall
from interlock.sdk.app_errors import DeclarationError
from interlock.sdk.context import Context
from interlock.sdk.declared import OperationDeclaration, StepDeclaration, Undo
from interlock.sdk.recording import Recorder, recording
from interlock.sdk.values import NotOfTypeError, read_as, result_json

if TYPE_CHECKING:
    from interlock.sdk.app import App

_OURS = str(Path(__file__).parent)
_LIBRARY = str(Path(concurrent.futures.__file__).parent)
#: So much of an error is told.
MAX_ERROR = 2_000


class Answer(msgspec.Struct, frozen=True):
    """What a function returned: JSON, or steps."""

    returned: str = ""
    elaboration: Elaboration | None = None


class Bound:
    """A function with all that it is called with."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Mapping[str, Any],
        read: Callable[[Any], Answer],
        context: Context | None,
    ) -> None:
        self._function = function
        self._args = args
        self._context = context
        #: Puts what the function returned into an answer.
        self.read = read
        self.is_async = inspect.iscoroutinefunction(function)

    def start(self) -> Any:
        """Call it. What an async function returns is to be awaited."""
        if self._context is None:
            return self._function(**self._args)
        return self._function(self._context, **self._args)


def bind(app: App, function: str, call: PythonCall, args: Mapping[str, Any], ctx: Context) -> Bound:
    """The function that is meant, bound to what it is told; validated.

    Raises:
        DeclarationError: There is none.
        ArgumentsError: It cannot be called so.
    """
    if call is PythonCall.ELABORATE:
        operation = app.operations.get(function)
        if operation is None:
            _unknown(app, function, "operation")
        return _elaborating(operation, args)
    if call is PythonCall.UNDO:
        if function not in app.undos:
            _unknown(app, function, "undo")
        return _undoing(*app.undos[function], args, ctx)
    found = app.steps.get(function) or _own_step(app, function)
    typed = found.signature.typed(found.signature.complete(args))
    ctx.args = typed
    return Bound(found.function, typed, lambda value: Answer(result_json(value, ctx.step)), ctx)


def _own_step(app: App, function: str) -> StepDeclaration:
    operation = app.operations.get(function)
    if operation is None or operation.step is None:
        _unknown(app, function, "step")
    return operation.step


def _unknown(app: App, function: str, what: str) -> NoReturn:
    near = did_you_mean(function, app.functions)
    raise DeclarationError(f"there is no {what} {function} in the application{near}")


def _elaborating(operation: OperationDeclaration, args: Mapping[str, Any]) -> Bound:
    typed = operation.signature.typed(operation.signature.complete(args))

    def record() -> Elaboration:
        recorder = Recorder(operation.name)
        token = recording.set(recorder)
        try:
            if operation.step is not None:
                bound = operation.step.signature.complete(args)
                last = recorder.call(operation.step, bound, operation.step.options)
                return recorder.made(last)
            return recorder.made(operation.function(**typed))
        finally:
            recording.reset(token)

    return Bound(record, {}, lambda made: Answer(elaboration=made), None)


def _undoing(undo: Undo, step: StepDeclaration, args: Mapping[str, Any], ctx: Context) -> Bound:
    """What takes a step back, with what the step was told and returned, as far as it wants it."""
    wanted = {name: args[name] for name in undo.arguments if name in args}
    typed = undo.signature.typed(wanted)
    if undo.result:
        returned = ctx.results.get(ctx.step)
        hint = undo.signature.hints.get(undo.result, Any)
        try:
            # A step that did nothing, or returned nothing, left nothing of any type.
            read = None if returned is None else read_as(returned, hint, undo.result)
        except NotOfTypeError as error:
            raise DeclarationError(
                f"{undo.signature.what}: {error}, which is what step {step.name} returned"
            ) from None
        typed[undo.result] = read
    ctx.args = typed
    return Bound(undo.function, typed, lambda _: Answer(), ctx)


def error_of(error: BaseException) -> str:
    """How an attempt failed, on a line: the type of the error and what it says."""
    (*_, last) = traceback.format_exception_only(error)
    name = type(error).__name__
    text = " ".join(str(error).split())
    told = f"{name}: {text}" if text else " ".join(last.split()) or name
    return told if len(told) <= MAX_ERROR else f"{told[: MAX_ERROR - 1]}…"


def traceback_of(error: BaseException) -> str:
    """Where an error came from: the lines of the application, and not those of this package."""
    told = traceback.TracebackException.from_exception(error)
    kept = [frame for frame in told.stack if not _is_ours(frame.filename)]
    told.stack = traceback.StackSummary.from_list(kept or list(told.stack))
    return "".join(told.format())


def _is_ours(file: str) -> bool:
    """Whether a frame is of what calls the application, and not of the application."""
    return file.startswith((_OURS, _LIBRARY))
