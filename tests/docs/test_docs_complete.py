"""What the code has, the documentation tells: no metric, variable, code or reason is left out."""

from __future__ import annotations

import ast
import inspect
import re
import select
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from types import ModuleType

import pytest
from docs_pages import ROOT

from interlock.api.answers import REASONS
from interlock.client.errors import MEANINGS
from interlock.execution.orders import order_of
from interlock.reporting import config_why, controlled_why, schedule_why
from interlock.resources.admission import AdmissionStatus, Grant, RefusalReason, WaitReason
from interlock.resources.controlled_job import ControlledAction, OverrideAction, WindowOutcome
from interlock.resources.job import Backoff, Completion, JobStatus, WhenTaken
from interlock.resources.job_config import JobConfigState, SkipReason
from interlock.resources.schedule import SCHEDULED_AT_ANNOTATION
from interlock.resources.tasks import ExecutionReason
from interlock.resources.variables import CONFIG_NAMES, JOB_NAMES, KEY_NAMES, TASK_NAMES
from interlock.runtimes.keeper.environment import TASK_VARIABLE
from interlock.schedules.configs import conditions as configs_conditions
from interlock.schedules.controlled import conditions as controlled_conditions
from interlock.testing.builders import a_job
from interlock.testing.serving import PATIENCE_S, Server

METRIC = re.compile(r"^\| `(interlock_\w+)` \| (\w+) \|", re.MULTILINE)
TYPE = re.compile(r"^# TYPE (interlock_\w+) (\w+)$", re.MULTILINE)
#: A server that is ready within this many looks is ready; each look takes a tenth of a second.
LOOKS = 1200


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def missing(names: Iterable[object], text: str) -> list[str]:
    """The names that a page does not show as code."""
    return [
        str(name) for name in names if not re.search(rf"`\$?\{{?{re.escape(str(name))}\b", text)
    ]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that is at work."""
    with Server(tmp_path_factory.mktemp("complete") / "data") as server:
        for _ in range(LOOKS):
            if _is_ready(server.url):
                break
        yield server.url


def _is_ready(url: str) -> bool:
    """Whether the server is at work; when it is not, a moment passes."""
    try:
        return read(f"{url}/readyz") == "ok"
    except urllib.error.HTTPError as error:
        error.close()
        select.select([], [], [], 0.1)
        return False


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        told: str = answer.read().decode()
        return told


def test_every_metric_is_told_with_its_type(url: str) -> None:
    exported = TYPE.findall(read(f"{url}/metrics"))
    # The library's own note of when each counter began says nothing of Interlock.
    ours = {(name, kind) for name, kind in exported if not name.endswith("_created")}

    # What a controller tells beside these is looked for on a cluster.
    told, _, _ = page("reference/metrics.md").partition("## On a cluster")
    assert set(METRIC.findall(told)) == ours


def test_every_endpoint_is_told(url: str) -> None:
    served = re.findall(r'href="([^"]+)"', read(f"{url}/"))

    assert served
    assert not [path for path in served if f"`{path}" not in page("reference/http-api.md")]


def test_every_variable_of_a_task_is_told() -> None:
    grants = (Grant(key="db", token=1),)
    job = a_job(
        metadata={"annotations": {SCHEDULED_AT_ANNOTATION: "2026-01-05T12:00:00Z"}},
        status=JobStatus(admission=AdmissionStatus(grants=grants)),
    )
    given = {*order_of(job, 0, 0).env, TASK_VARIABLE}
    section = page("reference/environment.md").split("## ")[1]

    assert set(re.findall(r"^\| `(INTERLOCK_\w+)`", section, re.MULTILINE)) == given


def test_every_substitution_is_told() -> None:
    names = (*JOB_NAMES, *TASK_NAMES, *KEY_NAMES, *CONFIG_NAMES, "option.NAME")

    assert not missing(names, page("reference/environment.md"))


def test_every_variable_of_the_command_line_is_told() -> None:
    places = (ROOT / "src/interlock/modes/cli", ROOT / "src/interlock/client")
    read = {
        name
        for place in places
        for source in place.rglob("*.py")
        for name in re.findall(r"environ\S*[\[(]\"(INTERLOCK_\w+)\"", source.read_text("utf-8"))
    }

    assert not missing(read, page("reference/environment.md"))


@pytest.mark.parametrize(
    ("codes", "name"),
    [(MEANINGS, "reference/exit-codes.md"), (REASONS, "reference/http-api.md")],
    ids=["exit codes", "HTTP codes"],
)
def test_every_code_is_told(codes: Iterable[int], name: str) -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", page(name), re.MULTILINE)}

    # A reason that Kubernetes has for a code which is never sent here.
    assert set(codes) - {408} == told


@pytest.mark.parametrize(
    ("names", "where"),
    [
        pytest.param((*WaitReason, *RefusalReason), "how-to/find-out-why.md", id="reasons"),
        pytest.param(set(ExecutionReason) - {"Completed"}, "how-to/find-out-why.md", id="ends"),
        pytest.param(SkipReason, "reference/schedule-reasons.md", id="skips"),
        pytest.param(JobConfigState, "reference/schedule-reasons.md", id="states of configs"),
        pytest.param(WindowOutcome, "reference/schedule-reasons.md", id="outcomes of windows"),
        pytest.param(ControlledAction, "reference/schedule-reasons.md", id="what was done"),
        pytest.param(OverrideAction, "reference/schedule-reasons.md", id="exceptions"),
        pytest.param(WhenTaken, "how-to/never-two-at-once.md", id="policies"),
        pytest.param(Backoff, "how-to/retry-what-fails.md", id="backoffs"),
        pytest.param(Completion, "how-to/run-many-tasks.md", id="completions"),
    ],
)
def test_every_word_is_told(names: Iterable[str], where: str) -> None:
    assert not missing(names, page(where))


@pytest.mark.parametrize("module", [configs_conditions, controlled_conditions])
def test_every_word_of_a_condition_is_told(module: ModuleType) -> None:
    """Types and reasons of conditions are words in capitals, and nothing else there is."""
    said = {
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    words = {word for word in said if re.fullmatch(r"([A-Z][a-z]+)+", word)}

    assert words
    assert not missing(words, page("reference/schedule-reasons.md"))


def test_every_reason_of_why_is_told_for_schedules() -> None:
    sources = (config_why, controlled_why, schedule_why)
    text = "".join(map(inspect.getsource, sources))
    reasons = set(re.findall(r"reason=\"(\w+)\"", text)) | {"Held", "Skipped"}

    assert {"Suspended", "OutsideItsHours", "Draining"} <= reasons
    assert not missing(reasons, page("reference/schedule-reasons.md"))


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_no_job_of_a_tour_has_the_name_of_an_example(page: str) -> None:
    """`make up` has applied the examples: a reader who types the tour must not meet them."""
    examples = "\n".join(file.read_text("utf-8") for file in (ROOT / "examples").glob("*.yaml"))
    taken = set(re.findall(r"^  name: (\S+)$", examples, re.MULTILINE))
    before_clusters = (ROOT / page).read_text("utf-8").partition("<!-- on a cluster -->")[0]

    assert not taken & set(re.findall(r"--name (\S+)", before_clusters))
