"""What Jobs of a config are made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.execution.orders import order_of
from interlock.findings import child
from interlock.resources.door.checking import problems_of
from interlock.resources.job import JOB_FINALIZER, WhenTaken
from interlock.resources.job_config import Concurrency, JobConfig
from interlock.resources.metadata import OwnerReference
from interlock.resources.naming import GENERATED, MAX_CONFIG_NAME, MAX_JOB_NAME
from interlock.resources.options import OptionSpec, OptionType
from interlock.resources.pods import TemplateMetadata
from interlock.resources.schedule import (
    CONFIG_LABEL,
    JobTemplate,
    is_manual,
    is_of_schedule,
    scheduled_at,
)
from interlock.resources.tasks import process_of
from interlock.schedules.configs.making import job_on_demand, scheduled_job
from interlock.testing.builders import T0, a_job
from interlock.testing.config_builders import a_job_config, a_template, as_stored

DUE = datetime(2026, 1, 5, 12, 30, tzinfo=UTC)


def test_a_scheduled_job_is_named_after_its_due_time_and_belongs_to_its_config() -> None:
    config = a_job_config("report")

    job = scheduled_job(config, DUE).job

    assert job.metadata.name == f"report-{int(DUE.timestamp())}"
    assert job.metadata.labels == {"interlock.dev/job-config": "report"}
    assert job.metadata.annotations == {"interlock.dev/scheduled-at": "2026-01-05T12:30:00Z"}
    assert job.metadata.finalizers == (JOB_FINALIZER,)
    assert job.metadata.owner_references == (
        OwnerReference(
            api_version="interlock.dev/v1alpha1",
            kind="JobConfig",
            name="report",
            uid="uid-config-report",
            controller=True,
            block_owner_deletion=True,
        ),
    )
    assert is_of_schedule(job)
    assert scheduled_at(job) == DUE


def test_making_it_twice_makes_the_same() -> None:
    config = a_job_config("report")
    assert scheduled_job(config, DUE) == scheduled_job(config, DUE)


def test_a_job_gets_the_labels_and_annotations_of_the_template() -> None:
    metadata = TemplateMetadata(labels={"team": "data"}, annotations={"note": "nightly"})
    config = a_job_config("report", template=JobTemplate(spec=a_job().spec, metadata=metadata))

    job = scheduled_job(config, DUE).job

    assert job.metadata.labels["team"] == "data"
    assert job.metadata.annotations["note"] == "nightly"


def test_a_template_cannot_get_a_job_past_the_books() -> None:
    """What is said about one Job is not taken from a template."""
    annotations = {
        "interlock.dev/is-manually-scheduled": "true",
        "interlock.dev/scheduled-at": "1999-01-01T00:00:00Z",
        "interlock.dev/release": "always",
    }
    metadata = TemplateMetadata(annotations=annotations)
    config = a_job_config("report", template=JobTemplate(spec=a_job().spec, metadata=metadata))

    job = scheduled_job(config, DUE).job

    assert is_of_schedule(job)
    assert job.metadata.annotations == {"interlock.dev/scheduled-at": "2026-01-05T12:30:00Z"}


def test_a_job_knows_its_config_and_its_due_time() -> None:
    words = ("${jobconfig.name}", "${jobconfig.namespace}", "${jobconfig.scheduled_at}")
    config = a_job_config("report", template=a_template("echo", *words))

    made = scheduled_job(config, DUE)
    order = order_of(as_stored(made.job, 5), 0, 0)

    assert made.problems == ()
    assert process_of(order).command == ("echo", "report", "default", "2026-01-05T12:30:00Z")
    assert order.env["INTERLOCK_SCHEDULED_AT"] == "2026-01-05T12:30:00Z"


@pytest.mark.parametrize("text", ["", "soon", "2026-01-05T12:30:00", "9999-99-99T00:00:00Z"])
def test_an_annotation_that_is_no_moment_is_not_told_to_the_work(text: str) -> None:
    job = a_job(metadata={"annotations": {"interlock.dev/scheduled-at": text}})

    assert "INTERLOCK_SCHEDULED_AT" not in order_of(job, 0, 0).env


def test_a_run_on_demand_takes_values_a_name_a_time_and_a_policy() -> None:
    option = OptionSpec(name="region", type=OptionType.SELECT, values=("emea", "apac"))
    config = a_job_config(
        "report",
        options=(option,),
        template=a_template("./report", "${option.region}"),
        concurrency=Concurrency(policy=WhenTaken.FORBID, max_concurrency=3),
    )

    made = job_on_demand(
        config,
        {"region": "apac"},
        T0,
        name="mine",
        start_after=DUE,
        policy=WhenTaken.ENQUEUE,
    )

    assert made.problems == ()
    job = made.job
    assert job.metadata.name == "mine"
    assert is_manual(job)
    assert not is_of_schedule(job)
    assert job.spec.start_after == DUE
    assert job.spec.substitutions["option.region"] == "apac"
    assert job.spec.substitutions["jobconfig.scheduled_at"] == "2026-01-05T12:00:00Z"
    assert (job.spec.locks[0].when_taken, job.spec.locks[0].limit) == (WhenTaken.ENQUEUE, 3)


def test_a_run_on_demand_without_a_name_gets_one_made_of_the_configs() -> None:
    made = job_on_demand(a_job_config("report"), {}, T0)

    assert made.problems == ()
    assert (made.job.metadata.name, made.job.metadata.generate_name) == ("", "report-")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        pytest.param({"regoin": "emea"}, "options.regoin", id="an unknown option"),
        pytest.param({"region": "mars"}, "options.region", id="an unknown value"),
        pytest.param({}, "options.region", id="a required one that is missing"),
    ],
)
def test_what_is_wrong_with_the_values_is_told(given: dict[str, Any], path: str) -> None:
    option = OptionSpec(name="region", type=OptionType.SELECT, values=("emea",), required=True)
    config = a_job_config("report", options=(option,), template=a_template("${option.region}"))

    problems = job_on_demand(config, given, T0).problems

    assert path in {problem.path for problem in problems}
    assert not any("unknown variable" in problem.message for problem in problems)


REGION = OptionSpec(name="region", type=OptionType.SELECT, values=("emea", "apac"), default="emea")


@pytest.mark.parametrize(
    ("fixed", "given", "expected"),
    [
        pytest.param({}, {}, ("apac", "report"), id="the option, and the config's name"),
        pytest.param({"option.region": "mars"}, {}, ("mars", "report"), id="template over option"),
        pytest.param(
            {"jobconfig.name": "other"}, {}, ("apac", "other"), id="template over the config"
        ),
        pytest.param({}, {"option.region": "moon"}, ("moon", "report"), id="the run over option"),
        pytest.param(
            {"option.region": "mars", "jobconfig.name": "other"},
            {"option.region": "moon"},
            ("moon", "other"),
            id="the run over the template, name by name",
        ),
    ],
)
def test_substitutions_win_over_options_and_those_of_one_run_over_the_templates(
    fixed: dict[str, str], given: dict[str, str], expected: tuple[str, str]
) -> None:
    config = a_config_with_substitutions(fixed)

    made = job_on_demand(config, {"region": "apac"}, T0, substitutions=given)

    assert made.problems == ()
    assert process_of(order_of(as_stored(made.job, 5), 0, 0)).command == expected


def test_by_the_clock_the_templates_substitutions_win_too() -> None:
    config = a_config_with_substitutions({"option.region": "mars", "jobconfig.name": "other"})

    made = scheduled_job(config, DUE)

    assert made.problems == ()
    assert process_of(order_of(as_stored(made.job, 5), 0, 0)).command == ("mars", "other")


def a_config_with_substitutions(substitutions: dict[str, str]) -> JobConfig:
    template = a_template("${option.region}", "${jobconfig.name}")
    spec = replace(template.spec, substitutions=substitutions)
    return a_job_config("report", options=(REGION,), template=replace(template, spec=spec))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        pytest.param("option.regoin", "x", 'did you mean "option.region"?', id="misspelt"),
        pytest.param("opton.region", "x", 'did you mean "option.region"?', id="no such prefix"),
        pytest.param("region", "x", "unknown variable", id="not the full name"),
        pytest.param("args.who", "x", "unknown variable", id="nothing of the template uses it"),
        pytest.param("option.region", "a\0b", "NUL byte", id="a value no program can be given"),
    ],
)
def test_a_substitution_of_one_run_that_makes_no_sense_is_told_once(
    name: str, value: str, message: str
) -> None:
    config = a_config_with_substitutions({})

    (problem,) = job_on_demand(config, {}, T0, substitutions={name: value}).problems

    assert problem.path == child("spec.substitutions", name)
    assert message in problem.message


@pytest.mark.parametrize("name", ["option.region", "jobconfig.scheduled_at", "job.name"])
def test_every_variable_of_a_config_can_be_substituted_for_one_run(name: str) -> None:
    config = a_config_with_substitutions({})

    made = job_on_demand(config, {}, T0, substitutions={name: "x"})

    assert made.problems == ()
    assert made.job.spec.substitutions[name] == "x"


def test_the_moment_is_written_in_utc_whatever_its_offset() -> None:
    there = datetime(2026, 1, 5, 20, 30, tzinfo=timezone(timedelta(hours=8)))

    job = scheduled_job(a_job_config("report"), there).job

    assert job.metadata.annotations["interlock.dev/scheduled-at"] == "2026-01-05T12:30:00Z"
    assert job.metadata.name == f"report-{int(DUE.timestamp())}"


@pytest.mark.parametrize("length", [1, 20, 41, 42, 46, 47, MAX_CONFIG_NAME])
def test_jobs_have_good_names_however_long_the_configs_is(length: int) -> None:
    config = a_job_config("a" * (length - 1) + "b")
    assert problems_of(config) == ()

    scheduled = scheduled_job(config, T0)
    asked_for = job_on_demand(config, {}, T0)

    assert scheduled.problems == asked_for.problems == ()
    assert len(scheduled.job.metadata.name) <= MAX_JOB_NAME
    assert len(asked_for.job.metadata.generate_name) <= MAX_JOB_NAME - GENERATED
    if length <= 41:
        assert scheduled.job.metadata.name == f"{config.metadata.name}-{int(T0.timestamp())}"
    for made in (scheduled.job, asked_for.job):
        assert made.metadata.labels[CONFIG_LABEL] == config.metadata.name


def test_configs_that_differ_at_the_end_of_a_long_name_make_different_jobs() -> None:
    names = ["a" * (MAX_CONFIG_NAME - 1) + end for end in "bcd"]
    configs = [a_job_config(name) for name in names]
    assert len({scheduled_job(config, T0).job.metadata.name for config in configs}) == 3


def test_a_name_beyond_what_kubernetes_allows_a_cronjob_is_refused() -> None:
    problems = problems_of(a_job_config("a" * 53))
    assert [problem.path for problem in problems] == ["metadata.name"]
    assert "at most 52 characters" in problems[0].message
