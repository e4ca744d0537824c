"""Declarations: steps with their undos, and operations, as decorators make them of functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from msgspec.structs import replace

from interlock.findings import did_you_mean, shortened
from interlock.sdk.app_errors import DeclarationError, StepCallError
from interlock.sdk.options import Retry, StepOptions, Time
from interlock.sdk.recording import recording
from interlock.sdk.signatures import CONTEXT, Signature

if TYPE_CHECKING:
    from interlock.sdk.app import App

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

#: What a parameter of an undo is called that takes what the step returned, whatever the step has.
RESULT_PARAMETER = "result"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")


def function_name(given: str | None, function: Callable[..., Any], what: str) -> str:
    """The name that workers know a function by.

    Raises:
        DeclarationError: It cannot be one.
    """
    name = given or str(getattr(function, "__name__", ""))
    if not _NAME.fullmatch(name):
        raise DeclarationError(
            f"{what} {name!r}: expected a name of letters, digits, '_', '.' and '-', at most 63:"
            " give one with name="
        )
    return name


class Undo:
    """What takes a step back."""

    def __init__(self, function: Callable[..., Any], step: StepDeclaration) -> None:
        self.name = function_name(None, function, "undo")
        self.function = function
        self.signature = Signature(function, f"undo {self.name}")
        if not self.signature.takes_context:
            raise DeclarationError(f"undo {self.name}: expected {CONTEXT} as its first parameter")
        own, taken = step.signature.parameters, self.signature.parameters
        #: Its parameters that are those of the step.
        self.arguments = tuple(name for name in taken if name in own)
        others = [name for name in taken if name not in own]
        if len(others) > 1:
            raise DeclarationError(
                f"undo {self.name}: {', '.join(others)} are no parameters of step {step.name}:"
                " expected these, and one more for what the step returned"
            )
        #: Its parameter for what the step returned.
        self.result = others[0] if others else ""


class StepDeclaration:
    """A function that is a step, with all that was said of it."""

    def __init__(self, function: Callable[..., Any], name: str, options: StepOptions) -> None:
        self.name = name
        self.function = function
        self.signature = Signature(function, f"step {name}")
        if not self.signature.takes_context:
            raise DeclarationError(f"step {name}: expected {CONTEXT} as its first parameter")
        options.check(name)
        self.options = options
        self.undo: Undo | None = None

    def check(self) -> None:
        """Refuse what only the whole declaration shows.

        Raises:
            DeclarationError: It makes no sense.
        """
        options = self.options
        assert self.signature.hints is not None
        if self.undo is not None:
            assert self.undo.signature.hints is not None
            return
        given = {
            "undo_retries": options.undo_retries is not None,
            "undo_covered_by": options.undo_covered_by is not None,
            'before_retry="RollBackFirst"': options.before_retry == "RollBackFirst",
        }
        for name, is_given in given.items():
            if is_given:
                raise DeclarationError(
                    f"step {self.name}: {name} means nothing without an undo:"
                    f" write one under @{self.function.__name__}.undo"
                )


class StepFunction(Generic[P, T]):
    """A declared step. Called in an operation it is noted; `call` runs it, as in a test."""

    def __init__(
        self,
        app: App,
        declared: StepDeclaration,
        *,
        called: str = "",
        needs: Sequence[object] | None = None,
        options: StepOptions | None = None,
    ) -> None:
        self._app = app
        self._declared = declared
        self._called = called
        self._needs = needs
        self._options = options
        self.__name__ = declared.name
        self.__doc__ = declared.function.__doc__

    @property
    def name(self) -> str:
        """The name that workers know it by."""
        return self._declared.name

    @property
    def call(self) -> Callable[..., Any]:
        """The function itself: `reserve_gear.call(ctx, "small")`."""
        return self._declared.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        recorder = recording.get()
        if recorder is None:
            raise StepCallError(
                f"step {self.name} was called outside of an operation: submit an operation that"
                f" calls it, or run it here with {self.name}.call(ctx, ...)"
            )
        declared = self._declared
        bound = declared.signature.bind(args, kwargs)
        options = self._options or declared.options
        noted = recorder.call(declared, bound, options, name=self._called, needs=self._needs)
        # It stands for what the step will return.
        return cast(T, noted)

    def options(
        self,
        *,
        name: str | None = None,
        needs: Sequence[object] | None = None,
        retries: Retry | None = None,
        timeout: Time | None = None,
    ) -> StepFunction[P, T]:
        """The step with other options for one call: `dns.options(needs=[gear])(name)`.

        `needs` are what steps returned, or names of steps; `[]` is none of them.
        """
        options = self._options or self._declared.options
        if retries is not None:
            options = replace(options, retries=retries)
        if timeout is not None:
            options = replace(options, timeout=timeout)
        options.check(self.name)
        return StepFunction(
            self._app,
            self._declared,
            called=name or self._called,
            needs=self._needs if needs is None else list(needs),
            options=options,
        )

    def undo(self, function: F) -> F:
        """Declare what takes the step back: a decorator.

        It is called with ctx, those arguments of the step that it has parameters for, and in one
        more parameter with what the step returned: None when it returned nothing, or did not end.
        """
        self._app.declare_undo(self._declared, function)
        return function


class OperationFunction(Generic[P, T]):
    """A declared operation: submit it, or run it in a test with `app.run_locally`."""

    def __init__(self, declared: OperationDeclaration, spec: Mapping[str, Any] | None = None):
        self.declared = declared
        #: What is said of one request alone.
        self.spec: Mapping[str, Any] = spec or {}
        self.__name__ = declared.name
        self.__doc__ = declared.function.__doc__

    @property
    def name(self) -> str:
        """The name that workers know it by."""
        return self.declared.name

    @property
    def call(self) -> Callable[..., Any]:
        """The function itself."""
        return self.declared.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """As a part of another operation, whose steps its own become."""
        if recording.get() is None:
            raise StepCallError(
                f"operation {self.name} was called directly: submit it with"
                f" app.submit({self.name}, ...), or try it with app.run_locally({self.name}, ...)"
            )
        if self.declared.step is not None:
            own: StepFunction[P, T] = StepFunction(self.declared.app, self.declared.step)
            return own(*args, **kwargs)
        bound = self.declared.signature.bind(args, kwargs)
        return cast(T, self.declared.function(**bound))

    def options(
        self,
        *,
        idempotency_key: str | None = None,
        owner: str | None = None,
        queue: str | None = None,
        parent: str | None = None,
        name: str | None = None,
    ) -> OperationFunction[P, T]:
        """The operation with options for one request: `app.submit(create.options(...), ...)`.

        Whoever asks twice with one `idempotency_key` gets the same Job; `parent` is the Job that it
        is a part of; `name` is what the Job is called instead of a name that is made up.
        """
        given = {
            "idempotency_key": idempotency_key,
            "owner": owner,
            "queue": queue,
            "parent": parent,
            "name": name,
        }
        kept = {key: value for key, value in given.items() if value is not None}
        return OperationFunction(self.declared, {**self.spec, **kept})

    def undo(self, function: F) -> F:
        """Declare what takes back an operation that does its work itself: a decorator."""
        declared = self.declared
        if declared.step is None:
            raise DeclarationError(
                f"operation {self.name}: its steps are undone one by one: give them undos"
            )
        declared.app.declare_undo(declared.step, function)
        return function


class OperationDeclaration:
    """A function that is an operation, with all that was said of it."""

    def __init__(
        self,
        app: App,
        function: Callable[..., Any],
        name: str,
        spec: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        self.app = app
        self.name = name
        self.function = function
        self.spec = spec
        self.signature = Signature(function, f"operation {name}")
        #: The step that it is itself, when it does the work.
        self.step: StepDeclaration | None = None
        if self.signature.takes_context:
            own = StepOptions(timeout=spec.get("timeout"), **options)
            self.step = StepDeclaration(function, name, own)
        elif options:
            raise DeclarationError(
                f"operation {name}: {next(iter(options))} is for one that does its work itself, in"
                f" a function with {CONTEXT} as its first parameter: give it to the steps"
            )
        elif inspect.iscoroutinefunction(function):
            raise DeclarationError(
                f"operation {name}: it only says which steps there are: write it with def, and its"
                " steps with async def"
            )
        for field in ("target", "title", "description", "owner"):
            for template in _templates(spec.get(field)):
                self._check_template(field, template)

    def _check_template(self, field: str, template: str) -> None:
        where = f"operation {self.name}: {field} {template!r}"
        for variable in _variables(template, where):
            if variable not in self.signature.parameters:
                near = did_you_mean(variable, self.signature.parameters)
                raise DeclarationError(f"{where}: there is no parameter {variable}{near}")

    def check(self) -> None:
        """Refuse what only the whole declaration shows."""
        assert self.signature.hints is not None
        if self.step is not None:
            self.step.check()


def _templates(given: str | Mapping[str, str] | None) -> list[str]:
    if given is None:
        return []
    return [given] if isinstance(given, str) else list(given.values())


def _variables(template: str, where: str) -> list[str]:
    """The names of a text such as "applications/{application}"."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise DeclarationError(f"{where}: {error}") from None
    found = []
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if not name.isidentifier() or form or conversion:
            raise DeclarationError(f"{where}: expected the names of parameters in {{}}")
        found.append(name)
    return found


def filled(template: str, args: Mapping[str, Any]) -> str:
    """A text with values in the place of names."""
    return template.format_map({name: _text_of(value) for name, value in args.items()})


def _text_of(value: Any) -> str:
    return str(getattr(value, "value", value))


def line_of(text: str) -> str:
    """A text on a line."""
    return " ".join(text.split())


def shown_value(value: Any) -> str:
    """A value in a message."""
    return shortened(_text_of(value))
