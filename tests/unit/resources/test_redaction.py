"""Secrets that an owner names go no further than the door."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.resources.codec import encode
from interlock.resources.job import MAX_ARGS_BYTES, JobSpec
from interlock.resources.kinds import decode
from interlock.resources.redaction import REDACTED, redacted_spec
from interlock.resources.steps import PythonSpec
from interlock.testing.asking import JOBS, Ask, Asker, asking

SECRET = "s3cr3t-of-ana"


@pytest.fixture
def ask() -> Ask:
    return asking(Asker())


@pytest.mark.parametrize(
    ("names", "left"),
    [
        pytest.param(("password",), {"password": REDACTED, "db": {"key": "k", "a.b": 1}}, id="one"),
        pytest.param(("db.key",), {"password": "p", "db": {"key": REDACTED, "a.b": 1}}, id="below"),
        pytest.param(("db",), {"password": "p", "db": REDACTED}, id="all below"),
        pytest.param(
            ("nothing", "db.no"), {"password": "p", "db": {"key": "k", "a.b": 1}}, id="no"
        ),
        pytest.param(("password.x",), {"password": "p", "db": {"key": "k", "a.b": 1}}, id="no way"),
    ],
)
def test_what_is_named_is_taken_out(names: tuple[str, ...], left: dict[str, Any]) -> None:
    given = {"password": "p", "db": {"key": "k", "a.b": 1}}
    spec = JobSpec(python=PythonSpec(function="f", args=given), redact=names)

    made = redacted_spec(spec)

    assert made.python is not None
    assert made.python.args == left
    assert given == {"password": "p", "db": {"key": "k", "a.b": 1}}
    assert redacted_spec(made) is made


def test_what_is_named_is_taken_out_of_lists_too() -> None:
    given = {"users": [{"name": "ana", "password": SECRET}, "x", [{"password": SECRET}]], "n": 1}
    spec = JobSpec(python=PythonSpec(function="f", args=given), redact=("users.password",))

    made = redacted_spec(spec)

    assert made.python is not None
    assert made.python.args == {
        "users": [{"name": "ana", "password": REDACTED}, "x", [{"password": REDACTED}]],
        "n": 1,
    }


@pytest.mark.parametrize("kind", ["Job", "JobConfig", "ControlledJob"])
def test_a_secret_is_not_stored(ask: Ask, kind: str) -> None:
    job = {"noop": {}, "args": {"password": SECRET, "size": "small"}, "redact": ["password"]}
    specs: dict[str, dict[str, Any]] = {
        "Job": job,
        "JobConfig": {"template": {"spec": job}},
        "ControlledJob": {"jobTemplate": {"spec": job}, "windows": [], "timezone": {"name": "UTC"}},
    }
    applied = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"x": "{SECRET}"}}'}
    body = {"kind": kind, "metadata": {"name": "j", "annotations": applied}, "spec": specs[kind]}
    place = JOBS.rpartition("/")[0] + f"/{kind.lower()}s"

    reply = ask("POST", place, body)

    assert reply.status == 201, reply.body
    assert SECRET.encode() not in reply.body
    assert REDACTED.encode() in reply.body
    assert SECRET.encode() not in ask("GET", f"{place}/j").body


def test_work_may_not_name_what_it_would_not_get(ask: Ask) -> None:
    process = {"command": ["login", "${args.password}"]}
    spec = {"process": process, "args": {"password": SECRET}, "redact": ["password"]}
    reply = ask("POST", JOBS, {"kind": "Job", "metadata": {"name": "j"}, "spec": spec})

    assert reply.status == 422
    assert [one["field"] for one in reply.json["details"]["causes"]] == ["spec.process.command[1]"]


def test_arguments_have_a_size_that_a_status_can_show(ask: Ask) -> None:
    args = {f"a{at}": "x" * 60_000 for at in range(5)}
    spec = {"noop": {}, "args": args}
    reply = ask("POST", JOBS, {"kind": "Job", "metadata": {"name": "j"}, "spec": spec})

    assert reply.status == 422
    assert f"spec.args: expected at most {MAX_ARGS_BYTES} bytes" in reply.json["message"]


def test_a_job_that_names_secrets_is_read_as_it_was_written() -> None:
    body = {"kind": "Job", "spec": {"noop": {}, "redact": ["a"]}, "metadata": {"name": "j"}}
    again = decode("Job", encode(decode("Job", encode(body))))
    assert encode(again) == encode(decode("Job", encode(body)))
