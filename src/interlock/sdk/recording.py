"""Elaboration: the function of an operation is run once, and each step that it calls is noted.

A step that is called does nothing then: it returns a placeholder, which stands for what the step
will return wherever it is passed on. Each step needs the one before, unless the operation says
otherwise, and always those whose results it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from interlock.findings import Findings, did_you_mean
from interlock.resources.checks.operations import check_steps
from interlock.resources.checks.validator import check_rules
from interlock.resources.codec import encode
from interlock.resources.references import LITERAL, RESULT
from interlock.resources.steps import (
    MAX_STEPS,
    BeforeRetry,
    ChildRequest,
    Elaboration,
    PythonSpec,
    Step,
    StepRetries,
    StepWork,
    UndoRetries,
)
from interlock.runtimes.workers.protocol import MAX_FRAME
from interlock.sdk.app_errors import ElaborationError
from interlock.sdk.options import RollBack, StepOptions, duration_of
from interlock.sdk.values import as_tree

if TYPE_CHECKING:
    from interlock.sdk.declared import StepDeclaration, StepFunction

#: What surrounds the name of a step where its result stands, until it is written as a reference:
#: no text of a person has these.
_MARK = "\0interlock-result\0"


#: What is said of a part of an operation, beside its function and what that is called with.
_OF_CHILDREN = (
    *("target", "type", "title", "description", "owner"),
    *("stepsAtOnce", "maxInterruptions", "timeout"),
)


class Placeholder:
    """What a step will return. It can be passed on to steps and returned, and nothing else."""

    __slots__ = ("_step",)

    def __init__(self, step: str) -> None:
        self._step = step

    def __repr__(self) -> str:
        return f"<what step {self._step} will return>"

    def _unknown(self, *_: object) -> NoReturn:
        raise ElaborationError(
            f"what step {self._step} returns is not known yet while the steps are named: pass it"
            " on to a step as it is, and look into it there"
        )

    def __getattr__(self, name: str) -> NoReturn:
        # Those that begin so are asked for by libraries, to find out what a value is.
        if name.startswith("__"):
            raise AttributeError(name)
        self._unknown()

    __getitem__ = __iter__ = __len__ = __bool__ = __str__ = __format__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __call__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = _unknown
    __int__ = __float__ = __index__ = __eq__ = __ne__ = __hash__ = _unknown


def step_of(given: object) -> str | None:
    """The step for whose result a value stands; None when it is a value itself."""
    return given._step if isinstance(given, Placeholder) else None


class _Frame:
    """A part of an operation whose steps come one after another, or side by side."""

    def __init__(self, needs: tuple[str, ...], *, side_by_side: bool) -> None:
        #: What a step needs that is called next.
        self.needs = needs
        self.side_by_side = side_by_side
        #: What must be done before what comes after the part.
        self.ends: tuple[str, ...] = ()

    def add(self, ends: tuple[str, ...]) -> None:
        """Note a step, or a part within this one."""
        if self.side_by_side:
            self.ends += ends
        else:
            self.needs = self.ends = ends


class Recorder:
    """Notes the steps that an operation calls."""

    def __init__(self, operation: str, queue: str = "") -> None:
        self.operation = operation
        self._queue = queue
        self._steps: list[Step] = []
        #: The declarations that the steps are of, by the names of the steps.
        self._declared: dict[str, StepDeclaration] = {}
        self._covered: dict[str, str] = {}
        self._frames = [_Frame((), side_by_side=False)]
        self._children: list[ChildRequest] = []

    def call(
        self,
        declared: StepDeclaration,
        args: Mapping[str, Any],
        options: StepOptions,
        *,
        name: str = "",
        needs: Sequence[object] | None = None,
    ) -> Placeholder:
        """Note a call of a step.

        Raises:
            ElaborationError: It makes no sense here.
            NotJsonError: An argument cannot be written as JSON.
        """
        if len(self._steps) == MAX_STEPS:
            raise ElaborationError(f"{self.operation}: has more than {MAX_STEPS} steps")
        name = self._name_for(declared, name)
        used: dict[str, None] = {}
        tree = {key: self._written(value, f"{name}: {key}", used) for key, value in args.items()}
        frame = self._frames[-1]
        wanted = frame.needs if needs is None else tuple(map(self._needed, needs))
        below = self._below(wanted)
        wanted += tuple(one for one in used if one not in below)
        self._steps.append(self._step(declared, name, tree, options, wanted))
        self._declared[name] = declared
        frame.add((name,))
        return Placeholder(name)

    def child(self, spec: Mapping[str, Any]) -> None:
        """Note a part of the operation that is a Job of its own, by what that Job asks for."""
        python = {"queue": self._queue, **spec["python"]}
        fields = {name: spec[name] for name in _OF_CHILDREN if name in spec}
        asked = {"python": {k: v for k, v in python.items() if v != ""}, **fields}
        self._children.append(msgspec.convert(asked, ChildRequest))

    @contextmanager
    def part(self, *, side_by_side: bool) -> Iterator[None]:
        """The steps called within come one after another, or side by side."""
        outer = self._frames[-1]
        inner = _Frame(outer.needs, side_by_side=side_by_side)
        self._frames.append(inner)
        try:
            yield
        finally:
            self._frames.pop()
        if inner.ends:
            outer.add(inner.ends)

    def made(self, returned: Any) -> Elaboration:
        """All that was noted, and what the operation returns.

        Raises:
            ElaborationError: The steps make no sense together.
        """
        used: dict[str, None] = {}
        tree = self._written(returned, f"what {self.operation} returns", used)
        returns = "" if tree is None else msgspec.json.encode(tree).decode()
        steps = tuple(self._with_cover(step) for step in self._steps)
        made = Elaboration(steps=steps, children=tuple(self._children), returns=returns)
        found = Findings()
        check_rules(self.operation, made, found)
        check_steps(steps, found, "steps")
        if found:
            told = "; ".join(map(str, found.problems[:3]))
            raise ElaborationError(f"{self.operation}: {told}")
        length = len(encode(made))
        if length > MAX_FRAME // 2:
            raise ElaborationError(
                f"{self.operation}: its steps are {length} bytes as JSON, at most"
                f" {MAX_FRAME // 2} can be kept: pass on where things are, and not the things"
            )
        return made

    def _name_for(self, declared: StepDeclaration, name: str) -> str:
        if name:
            if name in self._declared:
                raise ElaborationError(f"{self.operation}: two steps have the name {name!r}")
            return name
        name, number = declared.name, 1
        while name in self._declared:
            number += 1
            name = f"{declared.name}-{number}"
        return name

    def _written(self, value: Any, what: str, used: dict[str, None]) -> Any:
        """A value as it is stored: with references where results of steps stand."""

        def hook(one: Any) -> Any:
            step = step_of(one)
            if step is None:
                raise TypeError(f"{type(one).__qualname__} is no type that can be")
            if step not in self._declared:
                raise ElaborationError(
                    f"{what}: {one!r} is of another operation, or of an earlier run of this one"
                )
            used[step] = None
            return f"{_MARK}{step}"

        return _referring(as_tree(value, what, hook), what)

    def _needed(self, given: object) -> str:
        """The name of a step that another one is said to need."""
        name = step_of(given)
        if name is None and isinstance(given, str):
            name = given
        if name is None:
            raise ElaborationError(
                f"{self.operation}: needs: {given!r}: expected what steps returned, or their names"
            )
        if name not in self._declared:
            near = did_you_mean(name, self._declared)
            raise ElaborationError(
                f"{self.operation}: needs: no step {name!r} was called before{near}"
            )
        return name

    def _below(self, names: tuple[str, ...]) -> set[str]:
        """Steps, and all that they need, directly or through others."""
        needs = {step.name: step.needs or () for step in self._steps}
        below, left = set(names), list(names)
        while left:
            for one in needs.get(left.pop(), ()):
                if one not in below:
                    below.add(one)
                    left.append(one)
        return below

    def _step(
        self,
        declared: StepDeclaration,
        name: str,
        tree: dict[str, Any],
        options: StepOptions,
        needs: tuple[str, ...],
    ) -> Step:
        undo, again, before = declared.undo, options.undo_retries, options.before_retry
        undone: StepWork | None = None
        if undo is not None:
            kept = {key: value for key, value in tree.items() if key in undo.arguments}
            undone = self._work(undo.name, kept)
        cover = options.undo_covered_by
        if undone is not None and cover is not None:
            self._covered[name] = cover if isinstance(cover, str) else cover.name
        timeout = options.timeout
        return Step(
            name=name,
            run=self._work(declared.name, tree),
            needs=needs,
            undo=undone,
            retries=StepRetries(limit=options.retries.limit, delay=options.retries.pause),
            undo_retries=(
                UndoRetries(limit=again.limit, delay=again.pause)
                if again is not None and undone is not None
                else None
            ),
            before_retry=(
                BeforeRetry.ROLL_BACK if isinstance(before, RollBack) else BeforeRetry(before)
            ),
            roll_back=(
                tuple(self._nearest(one, name) for one in before.steps)
                if isinstance(before, RollBack)
                else ()
            ),
            irreversible=options.irreversible,
            timeout=None if timeout is None else duration_of(timeout, f"step {name}: timeout"),
        )

    def _work(self, function: str, args: dict[str, Any]) -> StepWork:
        return StepWork(python=PythonSpec(function=function, args=args))

    def _nearest(self, given: str | StepFunction[..., Any], name: str) -> str:
        """The step that is meant: the one of this name, or the last that was called of it."""
        wanted = given if isinstance(given, str) else given.name
        if wanted in self._declared and isinstance(given, str):
            return wanted
        for step in reversed(self._steps):
            if self._declared[step.name].name == wanted:
                return step.name
        near = did_you_mean(wanted, self._declared)
        raise ElaborationError(
            f"{self.operation}: {name} is to roll back {wanted} before a retry, and no such step"
            f" was called before it{near}"
        )

    def _with_cover(self, step: Step) -> Step:
        """The step with the step whose undo covers its own; none where that is not called."""
        wanted = self._covered.get(step.name)
        if wanted is None:
            return step
        at = self._steps.index(step)
        in_order = [*reversed(self._steps[:at]), *self._steps[at + 1 :]]
        for other in in_order:
            if wanted in (other.name, self._declared[other.name].name):
                return msgspec.structs.replace(step, undo_covered_by=other.name)
        return step


def _referring(tree: Any, what: str) -> Any:
    """The tree with references where marks stand, and with what looks like one set apart."""
    if isinstance(tree, str) and tree.startswith(_MARK):
        return {RESULT: tree.removeprefix(_MARK)}
    if isinstance(tree, list):
        return [_referring(one, what) for one in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) == 1:
        ((name, inside),) = tree.items()
        if name == LITERAL or (name == RESULT and isinstance(inside, str)):
            if _MARK.encode() in msgspec.msgpack.encode(inside):
                raise ElaborationError(
                    f"{what}: a map with {name!r} alone stands for a reference, and this one has"
                    " the result of a step in it: give it another name"
                )
            return {LITERAL: tree}
    return {name: _referring(one, what) for name, one in tree.items()}


#: The operation that is being turned into steps.
recording: ContextVar[Recorder | None] = ContextVar("interlock_recording", default=None)
