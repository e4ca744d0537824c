"""The types of work there are: one entry says everything about a type that its noun does not.

An entry feeds the checks of a Job, the rules of the custom resource definition, what is frozen once
a Job is admitted, which mode takes it, the orders that are made of it, and which runtime they go
to. A new type is its noun in a Job's spec, its check, its work, its runtime if that is new, and an
entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.findings import Findings
from interlock.resources.checks.pods import check_batch_job, check_pod
from interlock.resources.job import JobSpec
from interlock.resources.pods import BatchJobTemplate, PodTemplate, TemplateMetadata
from interlock.resources.process import ProcessSpec, ReadinessProbe
from interlock.resources.steps import PythonSpec, StepWork
from interlock.resources.values.free_form import Walk, with_texts
from interlock.resources.values.texts import MAX_OBJECT_BYTES, check_free_form
from interlock.resources.variables import substitute
from interlock.resources.work import AdoptedWork, BatchWork, PodWork, ProcessWork, PythonWork, Work

#: A text in which variables stand for values: its field, its place there, and itself.
Text = tuple[str, str | int | None, str]
#: The variables of one attempt, worked out when a text names one.
Values = Callable[[], Mapping[str, str]]


#: The runtime of what workers do.
WORKERS = "workers"


class Mode(StrEnum):
    """Where an installation runs work."""

    #: On the machine of the server.
    EMBEDDED = "Embedded"
    #: In a Kubernetes cluster.
    CLUSTER = "Cluster"


def _no_texts(given: Any) -> Iterator[Text]:  # noqa: ARG001  As those that have some.
    return iter(())


class WorkType(Struct, frozen=True, kw_only=True):
    """Everything about a type of work that is not in its noun."""

    #: Its field in a Job's spec, and the name that this has in JSON.
    field: str
    path: str
    #: The modes that take it, and what those who write it in another one are told.
    modes: frozenset[Mode]
    elsewhere: str = ""
    #: Finds what is wrong with what people write there, beyond the rules of its noun.
    check: Callable[[Any, Findings], None] = lambda _, __: None
    #: The texts in which variables stand for values.
    texts: Callable[[Any], Iterator[Text]] = _no_texts
    #: How long those may grow, all together.
    most_text: int = MAX_OBJECT_BYTES
    #: Makes what is ordered of what was written; None when there is nothing to run.
    work: Callable[[Any, Values], Work] | None = None
    #: The runtime that carries it out; empty for the mode's own: processes, or pods.
    runtime: str = ""
    #: Whether the order tells a task its id; a keeper tells its processes itself.
    is_told_its_id: bool = True
    #: Data of others in it, however deep; None when there is none.
    free_form: Callable[[Any], Mapping[str, Any]] | None = None

    def given(self, spec: JobSpec | StepWork) -> Any:
        """What a Job or a step asks for of this type; None when it asks for none."""
        return getattr(spec, self.field, None)


def register(type: WorkType) -> Callable[[], None]:
    """Add a type of work, until the returned call is made."""
    assert type.field not in _TYPES, f"there is work of type {type.path} already"
    _TYPES[type.field] = type

    def withdraw() -> None:
        del _TYPES[type.field]

    return withdraw


def work_types() -> Sequence[WorkType]:
    """Every type of work, in the order in which people are told of them."""
    return tuple(_TYPES.values())


def types_of(spec: JobSpec | StepWork) -> Sequence[WorkType]:
    """The types of work that a Job or a step asks for: one, unless it is wrong."""
    # Asked several times for every write: a list costs less than a generator with calls.
    return [type for type in _TYPES.values() if getattr(spec, type.field, None) is not None]


def type_of(spec: JobSpec | StepWork) -> WorkType | None:
    """The type of work that a Job or a step asks for."""
    return next(iter(types_of(spec)), None)


def parts_of(spec: JobSpec) -> Iterator[tuple[str, JobSpec | StepWork]]:
    """Everything of a Job that may ask for work, with its path: itself, and what its steps do."""
    yield "spec", spec
    for at, step in enumerate(spec.steps or ()):
        yield f"spec.steps[{at}].run", step.run
        if step.undo is not None:
            yield f"spec.steps[{at}].undo", step.undo


def runs_nothing(spec: JobSpec) -> bool:
    """Whether the Job is done as soon as it may start."""
    type = type_of(spec)
    return type is not None and type.work is None


def texts_of(spec: JobSpec) -> Iterator[Text]:
    """Every text of a Job in which variables stand for values."""
    for type in types_of(spec):
        yield from type.texts(type.given(spec))
    for path, part in parts_of(spec) if spec.steps is not None else ():
        for type in types_of(part):
            for field, at, text in type.texts(type.given(part)):
                yield field.replace("spec", path, 1), at, text


def listed(types: Sequence[WorkType]) -> str:
    """The types as a sentence has them: process, pod and noop."""
    *most, last = (type.path for type in types)
    return f"{', '.join(most)} and {last}"


# Processes


def _process_texts(process: ProcessSpec) -> Iterator[Text]:
    for at, word in enumerate(process.command):
        yield "spec.process.command", at, word
    for at, word in enumerate(process.args):
        yield "spec.process.args", at, word
    for name, value in process.env.items():
        yield "spec.process.env", name, value
    for at, source in enumerate(process.env_from):
        yield "spec.process.envFrom", at, source.file
    if process.working_dir is not None:
        yield "spec.process.workingDir", None, process.working_dir
    if process.stdin is not None:
        yield "spec.process.stdin", None, process.stdin
    if process.readiness_probe is not None:
        yield from _probe_texts(process.readiness_probe)


def _probe_texts(probe: ReadinessProbe) -> Iterator[Text]:
    if probe.exec is not None:
        for at, word in enumerate(probe.exec.command):
            yield "spec.process.readinessProbe.exec.command", at, word
    if probe.http_get is not None:
        yield "spec.process.readinessProbe.httpGet.path", None, probe.http_get.path
    if probe.file is not None:
        yield "spec.process.readinessProbe.file.path", None, probe.file.path


def _process_work(process: ProcessSpec, values: Values) -> ProcessWork:
    if any("${" in text for text in _plain_texts(process)):
        process = _with_values(process, values())
    return ProcessWork(
        command=process.command + process.args,
        env=process.env,
        env_from=process.env_from,
        working_dir=process.working_dir,
        stdin=process.stdin,
        user=process.user,
        group=process.group,
        limits=process.limits,
        readiness_probe=process.readiness_probe,
    )


def _plain_texts(process: ProcessSpec) -> Iterator[str]:
    """The texts alone: asked before every start."""
    yield from process.command
    yield from process.args
    yield from process.env.values()
    for source in process.env_from:
        yield source.file
    yield process.working_dir or ""
    yield process.stdin or ""
    if process.readiness_probe is not None:
        for _, _, text in _probe_texts(process.readiness_probe):
            yield text


def _with_values(process: ProcessSpec, values: Mapping[str, str]) -> ProcessSpec:
    def put(text: str) -> str:
        return substitute(text, values)

    return replace(
        process,
        command=tuple(map(put, process.command)),
        args=tuple(map(put, process.args)),
        env={name: put(text) for name, text in process.env.items()},
        env_from=tuple(replace(source, file=put(source.file)) for source in process.env_from),
        working_dir=None if process.working_dir is None else put(process.working_dir),
        stdin=None if process.stdin is None else put(process.stdin),
        readiness_probe=_probe_with(process.readiness_probe, put),
    )


def _probe_with(probe: ReadinessProbe | None, put: Callable[[str], str]) -> ReadinessProbe | None:
    if probe is None:
        return None
    command, http, file = probe.exec, probe.http_get, probe.file
    return replace(
        probe,
        exec=command and replace(command, command=tuple(map(put, command.command))),
        http_get=http and replace(http, path=put(http.path)),
        file=file and replace(file, path=put(file.path)),
    )


# Pods and batch Jobs

_Template = TypeVar("_Template", PodTemplate, BatchJobTemplate)


def _template_texts(path: str, template: PodTemplate | BatchJobTemplate) -> Iterator[Text]:
    """Those of a template that hold a variable; their paths are dear to make."""
    walk = Walk(f"{path}.spec", template.spec)
    for text in walk.texts:
        if "${" in text:
            yield walk.path, None, text
    for name, value in template.metadata.labels.items():
        yield f"{path}.metadata.labels", name, value
    for name, value in template.metadata.annotations.items():
        yield f"{path}.metadata.annotations", name, value


def _filled(template: _Template, values: Values) -> _Template:
    """The template with its values; itself when there are none to put in, as in most Jobs."""
    if not any("${" in text for text in _all_texts(template)):
        return template
    known = values()

    def put(text: str) -> str:
        return substitute(text, known)

    metadata = template.metadata
    labels = {name: put(text) for name, text in metadata.labels.items()}
    annotations = {name: put(text) for name, text in metadata.annotations.items()}
    return replace(
        template,
        spec=with_texts(template.spec, put),
        metadata=TemplateMetadata(labels=labels, annotations=annotations),
    )


def _all_texts(template: PodTemplate | BatchJobTemplate) -> Iterator[str]:
    yield from Walk("", template.spec).texts
    yield from template.metadata.labels.values()
    yield from template.metadata.annotations.values()


def _free_form(template: PodTemplate | BatchJobTemplate) -> Mapping[str, Any]:
    return template.spec


# Operations


def _by_step(given: Any, values: Values) -> Work:  # noqa: ARG001  As those that make some.
    raise AssertionError("the steps of an operation are ordered one by one")


def _check_python(python: PythonSpec, to: Findings) -> None:
    check_free_form("spec.python.args", python.args, to)


_NO_PROCESSES = "a cluster runs no processes: give spec.pod with the command in a container"
_NO_CLUSTER = (
    "needs a Kubernetes cluster: this server runs processes on its own machine;"
    " give spec.process with the command, or apply the Job to a cluster"
)
_NO_ADOPTION = "needs a Kubernetes cluster: there are no objects of others on this server"
_IN_CLUSTER = frozenset({Mode.CLUSTER})

_TYPES: dict[str, WorkType] = {}
for _type in (
    WorkType(
        field="process",
        path="process",
        modes=frozenset({Mode.EMBEDDED}),
        elsewhere=_NO_PROCESSES,
        texts=_process_texts,
        # More than the kernel ever takes.
        most_text=8 * MAX_OBJECT_BYTES,
        work=_process_work,
        is_told_its_id=False,
    ),
    WorkType(
        field="pod",
        path="pod",
        check=check_pod,
        modes=_IN_CLUSTER,
        elsewhere=_NO_CLUSTER,
        texts=lambda template: _template_texts("spec.pod", template),
        work=lambda template, values: PodWork(template=_filled(template, values)),
        free_form=_free_form,
    ),
    WorkType(
        field="batch_job",
        path="batchJob",
        check=check_batch_job,
        modes=_IN_CLUSTER,
        elsewhere=_NO_CLUSTER,
        texts=lambda template: _template_texts("spec.batchJob", template),
        work=lambda template, values: BatchWork(template=_filled(template, values)),
        free_form=_free_form,
    ),
    WorkType(field="steps", path="steps", modes=frozenset(Mode), work=_by_step),
    WorkType(
        field="python",
        path="python",
        modes=frozenset(Mode),
        check=_check_python,
        work=lambda python, _: PythonWork(
            function=python.function, args=python.args, queue=python.queue
        ),
        free_form=lambda python: python.args,
        runtime=WORKERS,
    ),
    WorkType(field="noop", path="noop", modes=frozenset(Mode)),
    WorkType(
        field="adopted",
        path="adopted",
        modes=_IN_CLUSTER,
        elsewhere=_NO_ADOPTION,
        # Of the Queue, and of what was granted there, the order is told apart from this.
        work=lambda adopted, _: AdoptedWork(object=adopted),
    ),
):
    register(_type)
