"""The verbs for JobConfigs and ControlledJobs and a real server: what they write, and refuse."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from cli_program import Program

from interlock.client.api import Api
from interlock.client.kinds import JOB_CONFIGS, Kind
from interlock.client.target import Target
from interlock.commands.on_demand import Switching
from interlock.modes.cli.flags import parse
from interlock.modes.cli.main import verb_named
from interlock.modes.cli.ordering import carry_out
from interlock.modes.cli.session import Session
from interlock.modes.cli.verbs import get
from interlock.private_files import user_name
from interlock.testing.serving import PATIENCE_S, Server

CONFIG = """\
kind: JobConfig
metadata: {{name: {name}}}
spec:
  schedules: {schedules}
  options:
    - {{name: region, type: Select, values: [emea, apac], default: emea}}
    - {{name: tables, type: Multi, values: [a, b, c], required: true}}
    - {{name: full, type: Bool}}
  template:
    spec:
      process: {{command: [echo, "${{option.region}}", "${{option.tables}}", "${{option.full}}"]}}
"""
TWO = '[{cron: "0 0 29 2 *", timezone: Europe/London}, {cron: "5 0 29 2 *"}]'
#: Open at every moment, and stopped by the plan on leap days.
OPEN = '[{action: start, cron: "* * * * *"}, {action: stop, cron: "0 0 29 2 *"}]'
#: Open for a minute on leap days.
SHUT = '[{action: start, cron: "0 0 29 2 *"}, {action: stop, cron: "1 0 29 2 *"}]'
CONTROLLED = """\
kind: ControlledJob
metadata: {{name: {name}}}
spec:
  timezone: {{name: America/New_York}}
  events: {events}
  jobTemplate: {{spec: {{process: {{command: [sleep, "100000"]}}, gracePeriod: 1s}}}}
"""
#: Who the kernel says that asks.
ME = user_name(os.geteuid())
USER_STOP = {"interlock.dev/suspend-reason": "user-stop"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def interlock(server: Server, tmp_path: Path) -> Program:
    program = Program(server.url, tmp_path)
    # What a client says of itself counts for nothing.
    program.env |= {"USER": "somebody-else"}
    return program


def a_config(interlock: Program, name: str, schedules: str = TWO) -> str:
    interlock("apply", "-f", "-", given=CONFIG.format(name=name, schedules=schedules))
    return name


def an_engine(interlock: Program, name: str, events: str = SHUT) -> str:
    interlock("apply", "-f", "-", given=CONTROLLED.format(name=name, events=events))
    return name


def spec_of(interlock: Program, what: str) -> Any:
    return interlock.json("get", what)["spec"]


def overrides_of(interlock: Program, name: str) -> list[dict[str, Any]]:
    overrides: list[dict[str, Any]] = spec_of(interlock, f"ctj/{name}").get("overrides") or []
    return overrides


def jobs_of(interlock: Program, label: str) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = interlock.json("get", "jobs", "-l", label)["items"]
    return jobs


def test_a_config_is_run_on_demand_with_its_options(interlock: Program) -> None:
    name = a_config(interlock, "asked")
    told = interlock("run", name, "-O", "tables=a", "--option", "tables=b,c", "--follow")
    assert told == "emea a,b,c false\n"
    told = interlock("run", name, "-O", "tables=a", "-O", "full=yes", "-O", "region=apac",
                     "--name", "named", "--follow")  # fmt: skip
    assert told == "apac a true\n"

    job = interlock.json("get", "job/named")
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("JobConfig", name, True)
    assert job["metadata"]["labels"]["interlock.dev/job-config"] == name
    assert job["metadata"]["annotations"]["interlock.dev/creator"] == ME


def test_a_run_on_demand_takes_substitutions_over_options(interlock: Program) -> None:
    name = a_config(interlock, "substituted")
    argv = ("run", name, "-O", "tables=a", "--substitution", "option.region=any = of")
    assert interlock(*argv, "--follow") == "any = of a false\n"

    job = interlock.json(*argv, "--substitution", "job.name=mine")
    given = job["spec"]["substitutions"]
    assert (given["option.region"], given["job.name"]) == ("any = of", "mine")


def test_the_templates_substitutions_win_and_an_option_of_no_effect_is_told(
    interlock: Program,
) -> None:
    substitutions = 'substitutions: {{option.region: fixed, option.full: "no"}}'
    text = CONFIG.replace("    spec:\n", f"    spec:\n      {substitutions}\n")
    interlock("apply", "-f", "-", given=text.format(name="fixed", schedules=TWO))

    argv = ("run", "fixed", "-O", "tables=a", "-O", "region=apac", "--follow")
    assert interlock(*argv) == "fixed a no\n"
    assert (
        'option region has no effect: the template\'s substitutions give "option.region"'
        in interlock.errors
    )
    assert "option tables" not in interlock.errors

    substituted = ("--substitution", "option.region=asked")
    assert interlock(*argv, *substituted) == "asked a no\n"


def test_a_command_takes_substitutions(interlock: Program) -> None:
    argv = ("run", "--substitution", "option.region=apac")
    assert interlock(*argv, "--follow", "--", "echo", "${option.region}") == "apac\n"

    before = interlock.json("get", "jobs")["items"]
    assert interlock("run", "--substitution", "opton.a=b", "--", "true", code=2) == ""
    assert "--substitution opton.a: " in interlock.errors
    assert 'did you mean "option.a"?' in interlock.errors
    assert len(interlock.json("get", "jobs")["items"]) == len(before)


def test_a_run_on_demand_waits_for_its_time_in_line(interlock: Program) -> None:
    name = a_config(interlock, "later")
    told = interlock("run", name, "-O", "tables=a", "--at", "2090-06-01T06:00Z")
    assert "; it starts Thu 1 Jun 2090 07:00 BST at the earliest" in told
    job = interlock.json("run", name, "-O", "tables=a", "--after", "90m", "--policy", "forbid")
    (lock,) = job["spec"]["locks"]
    assert (lock["key"], lock["whenTaken"]) == (f"jobconfig/{name}", "Forbid")
    assert job["spec"]["startAfter"]
    for job in jobs_of(interlock, f"interlock.dev/job-config={name}"):
        interlock("kill", job["metadata"]["name"])


@pytest.mark.parametrize(
    ("argv", "code", "expected"),
    [
        pytest.param([], 2, "option tables: is required", id="a required option is missing"),
        pytest.param([], 2, "tables       Multi  (a | b | c)  required", id="options are listed"),
        pytest.param(["-O", "tabels=a"], 2, 'did you mean "tables"?', id="an unknown option"),
        pytest.param(["-O", "tables=d"], 2, "expected one of a, b, c", id="an unknown choice"),
        pytest.param(["-O", "full=maybe"], 2, "expected true or false", id="no bool"),
        pytest.param(["-O", "tables"], 2, "NAME=VALUE", id="no value"),
        pytest.param(
            ["-O", "region=emea", "-O", "region=apac"], 2, "more than once", id="given twice"
        ),
        pytest.param(
            ["-O", "tables=a", "--substitution", "option.regon=x"],
            2,
            'spec.substitutions["option.regon"]: unknown variable; did you mean "option.region"?',
            id="an unknown variable",
        ),
        pytest.param(
            ["-O", "tables=a", "--at", "2020-01-01T00:00Z"], 2, "is past", id="a past time"
        ),
        pytest.param(
            ["-O", "tables=a", "--at", "soon"], 2, "expected a time such as", id="no time"
        ),
        pytest.param(
            ["-O", "tables=a", "--at", "tomorrow"], 2, "several zones", id="which zone's tomorrow"
        ),
        pytest.param(["--at", "tomorrow", "--after", "1h"], 2, "not both", id="two times"),
        pytest.param(["--policy", "wait"], 2, "none of Enqueue", id="an unknown policy"),
        pytest.param(["--image", "x"], 2, "is for a command", id="a flag of commands"),
        pytest.param(["--", "true"], 2, "not both", id="a config and a command"),
    ],
)
def test_a_run_that_makes_no_sense_stores_nothing(
    interlock: Program, argv: list[str], code: int, expected: str
) -> None:
    name = a_config(interlock, "refused")

    assert interlock("run", name, *argv, code=code) == ""

    assert interlock.errors.startswith("error: ")
    assert expected in interlock.errors
    assert jobs_of(interlock, f"interlock.dev/job-config={name}") == []


def test_a_config_that_is_not_there_is_suggested(interlock: Program) -> None:
    a_config(interlock, "there")
    interlock("run", "theer", code=4)
    assert "did you mean `there`?" in interlock.errors
    interlock("run", "echo", code=4)
    assert "interlock run -- echo" in interlock.errors
    an_engine(interlock, "engine-to-run")
    interlock("run", "engine-to-run", code=4)
    assert "engine-to-run is a ControlledJob: interlock start engine-to-run" in interlock.errors


def test_a_verb_for_the_other_kind_is_suggested(interlock: Program) -> None:
    config, engine = a_config(interlock, "no-exceptions"), an_engine(interlock, "no-switch")
    interlock("hold", config, "--for", "1h", code=4)
    assert f"{config} is a JobConfig: interlock suspend jobconfig/{config}" in interlock.errors
    interlock("enable", engine, code=4)
    assert f"{engine} is a ControlledJob: interlock resume" in interlock.errors
    interlock("logs", engine, code=4)
    assert f"{engine} is a ControlledJob: interlock logs controlledjob/{engine}" in interlock.errors
    interlock("kill", engine, code=4)
    assert f"{engine} is a ControlledJob: interlock stop controlledjob/{engine}" in interlock.errors
    interlock("stop", config, code=4)
    assert f"{config} is a JobConfig: interlock suspend jobconfig/{config}" in interlock.errors
    interlock("wait", config, code=4)
    assert f"interlock why jobconfig/{config} names them" in interlock.errors
    interlock("start", f"jc/{config}", code=2)
    assert f"interlock run {config}" in interlock.errors


def test_the_logs_of_a_schedule_are_those_of_its_newest_job(interlock: Program) -> None:
    name = a_config(interlock, "printed")
    interlock("logs", f"jc/{name}", code=4)
    assert f"interlock why jobconfig/{name} tells when it starts" in interlock.errors
    interlock("run", name, "-O", "tables=a", "--wait")
    interlock("run", name, "-O", "tables=b", "--name", "printed-zzzzzz", "--wait")

    assert interlock("logs", f"jc/{name}") == "emea b false\n"
    assert interlock.errors.strip() == "job/printed-zzzzzz"
    assert interlock("logs", f"jobconfig/{name}", "--follow") == "emea b false\n"


def test_text_of_several_lines_is_shown_line_by_line(interlock: Program) -> None:
    event = "BEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20261225\nEND:VEVENT"
    lines = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//a//b//EN\n{event}\nEND:VCALENDAR\n"
    calendar = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": "of-lines"},
        "spec": {"icalendar": lines},
    }
    interlock("apply", "-f", "-", given=json.dumps(calendar))

    assert "\n    VERSION:2.0\n    PRODID" in interlock("get", "calendar", "of-lines", "-o", "yaml")


def test_schedules_are_switched_off_and_on(interlock: Program) -> None:
    name = a_config(interlock, "switched")
    assert interlock("disable", name, "--schedule", "1") == (
        f"jobconfig/{name} schedule 1 disabled\n"
    )
    assert interlock("disable", name) == f"jobconfig/{name} disabled\n"
    assert interlock("disable", name) == f"jobconfig/{name} already disabled\n"
    assert "its schedules are disabled" in interlock("why", f"jobconfig/{name}")
    assert all(one["disabled"] for one in spec_of(interlock, f"jc/{name}")["schedules"])
    assert interlock("enable", f"jc/{name}") == f"jobconfig/{name} enabled\n"
    assert not any("disabled" in one for one in spec_of(interlock, f"jc/{name}")["schedules"])
    assert interlock.json("enable", name)["metadata"]["name"] == name

    interlock("enable", name, "--schedule", "2", code=2)
    assert "it has 2, counted from 0" in interlock.errors
    interlock("enable", "swiched", code=4)
    assert "did you mean `switched`?" in interlock.errors
    interlock("enable", f"job/{name}", code=2)
    interlock("disable", a_config(interlock, "on-demand", "[]"), code=5)
    assert "has no schedule" in interlock.errors


def test_schedules_are_suspended_and_resumed(interlock: Program) -> None:
    config, engine = a_config(interlock, "held-config"), an_engine(interlock, "held-engine")
    both = (f"jobconfig/{config}", f"controlledjob/{engine}")
    told = interlock("suspend", *both, "--reason", "month end").splitlines()
    assert told == [f"{one} suspended" for one in both]
    assert f"it is suspended by {ME}: month end" in interlock("why", both[0])
    interlock("start", engine, code=5)
    assert f"interlock resume controlledjob/{engine}" in interlock.errors
    assert interlock("suspend", both[0]) == f"{both[0]} already suspended\n"
    assert "suspended all the same" in interlock("enable", config)
    assert interlock("resume", *both).splitlines() == [f"{one} resumed" for one in both]
    assert interlock("resume", both[1]) == f"{both[1]} not suspended\n"
    for one in both:
        item = interlock.json("get", one)
        assert "suspend" not in item["spec"]
        assert "interlock.dev/suspend-reason" not in item["metadata"].get("annotations", {})

    interlock("suspend", engine, code=4)
    assert f"did you mean `controlledjob/{engine}`?" in interlock.errors
    interlock("suspend", *both, "calendar/x", code=2)
    assert "suspend" not in spec_of(interlock, both[0])
    interlock("suspend", "jobconfig/nobody", both[0], code=4)
    assert spec_of(interlock, both[0])["suspend"] is True


def test_outside_its_windows_one_is_started_and_stopped_by_hand(interlock: Program) -> None:
    name = an_engine(interlock, "by-hand")
    job = interlock.json("start", name)
    assert job["metadata"]["annotations"]["interlock.dev/is-manually-scheduled"] == "true"
    assert job["spec"]["killAt"].endswith("-02-29T05:01:00Z")
    first = job["metadata"]["name"]
    interlock("wait", first, "--for", "started")
    assert interlock("start", name) == (
        f"controlledjob/{name} runs already: job/{first}; nothing was done\n"
    )
    told = interlock("stop", name, "--wait")
    assert told.startswith(f"job/{first} stopping\n  it starts again ")
    assert f"interlock start {name}" in told
    stopped = interlock.json("get", f"job/{first}")
    assert stopped["metadata"]["annotations"].items() >= USER_STOP.items()
    assert stopped["status"]["phase"] == "Killed"
    assert interlock("stop", f"controlledjob/{name}").startswith(
        f"controlledjob/{name} runs nothing\n"
    )
    interlock("stop", "by-hnad", code=4)
    interlock("start", "by-hnad", code=4)
    assert "did you mean `by-hand`?" in interlock.errors
    interlock("start", f"job/{name}", code=2)


def test_inside_a_window_a_stop_is_taken_back(interlock: Program) -> None:
    name = an_engine(interlock, "taken-back", OPEN)
    interlock("start", name)
    told = interlock("stop", name, "--wait")
    assert "it starts again" in told
    job = interlock.json("start", name)
    notes = job["metadata"]["annotations"]
    assert int(notes["interlock.dev/job-run-id"]) >= 1
    interlock("wait", job["metadata"]["name"], "--for", "started")
    interlock("suspend", f"ctj/{name}")
    interlock("wait", job["metadata"]["name"], code=137)


def test_a_job_of_a_window_that_is_stopped_by_its_name_is_marked_too(interlock: Program) -> None:
    first = interlock.json("start", an_engine(interlock, "marked"))["metadata"]["name"]
    interlock("kill", first, "--wait")
    assert interlock.json("get", f"job/{first}")["metadata"]["annotations"].items() >= (
        USER_STOP.items()
    )


def test_a_restart_has_the_next_job_before_the_old_one_is_stopped(interlock: Program) -> None:
    name = an_engine(interlock, "again")
    first = interlock.json("start", name)["metadata"]["name"]
    interlock("wait", first, "--for", "started")
    told = interlock("restart", name, "--reason", "new data").splitlines()
    assert told[0] == f"job/{first} stopping"
    second = told[1].removeprefix("job/").removesuffix(" created")
    assert f"job/{first} is gone" in told[2]
    interlock("wait", first, code=137)
    interlock("wait", second, "--for", "started")
    notes = interlock.json("get", f"job/{first}")["metadata"]["annotations"]
    assert notes["interlock.dev/stopped-because"] == "restarted: new data"
    assert notes["interlock.dev/stopped-by"] == ME
    assert notes.get("interlock.dev/suspend-reason") is None
    assert f"JobStopped job/{first}: restarted by {ME}: new data" in interlock("why", f"ctj/{name}")
    interlock("restart", "agian", code=4)
    interlock("kill", second, "--wait")


def test_a_start_is_left_out_and_taken_back(interlock: Program) -> None:
    name = an_engine(interlock, "left-out")
    told = interlock("skip", name, "--reason", "no need", "--dry-run")
    assert told.splitlines()[0].endswith(
        "does not start at 00:00 EST (dry run: nothing was changed)"
    )
    assert overrides_of(interlock, name) == []
    assert "the exception goes by itself" in interlock("skip", name, "--reason", "no need")
    (skip,) = overrides_of(interlock, name)
    assert (skip["action"], skip["by"], skip["reason"]) == ("Skip", ME, "no need")
    assert skip["from"].endswith("-02-29T05:00:00Z")
    assert skip["until"].endswith("-02-29T05:01:00Z")
    interlock("skip", name, skip["from"][:10], "--count", "2")
    assert len(overrides_of(interlock, name)) == 2
    assert f"taken back, set by {ME} (no need)" in interlock("skip", name, "next", "--cancel")
    interlock("skip", name, "--cancel")
    assert overrides_of(interlock, name) == []


def test_a_window_is_extended_and_the_last_word_counts(interlock: Program) -> None:
    name = an_engine(interlock, "longer", OPEN)
    told = interlock("extend", name, "--by", "2h").splitlines()[0]
    assert "ends " in told
    assert "; the exception goes by itself " in told
    (first,) = overrides_of(interlock, name)
    assert first["action"] == "Extend"
    assert first["until"].endswith("-02-29T07:00:00Z")
    year = first["until"][:4]
    interlock("extend", name, "--until", f"{year}-02-29 01:00")
    (second,) = overrides_of(interlock, name)
    assert second["until"] == f"{year}-02-29T06:00:00Z"
    assert "no longer extended" in interlock("extend", name, "--cancel")
    assert overrides_of(interlock, name) == []
    interlock("hold", name, "--for", "10d")


def test_one_is_held_and_let_go(interlock: Program) -> None:
    name = an_engine(interlock, "on-hold")
    assert " held until " in interlock("hold", name, "--until", "2090-01-05", "--reason", "audit")
    (hold,) = overrides_of(interlock, name)
    assert (hold["action"], hold["until"], hold["by"]) == ("Hold", "2090-01-05T05:00:00Z", ME)
    interlock("start", name, code=5)
    assert f"interlock hold {name} --cancel" in interlock.errors
    why = interlock("why", f"controlledjob/{name}")
    assert why.startswith(f"{name} is not running: it is on hold; it starts ")
    assert f"set by {ME} (audit)" in why
    answer = interlock.json("why", name)
    assert (answer["kind"], answer["waits"][0]["reason"]) == ("ControlledJob", "Held")
    interlock("hold", name, "--for", "3d")
    assert len(overrides_of(interlock, name)) == 1
    assert "no longer held" in interlock("hold", name, "--cancel")
    assert overrides_of(interlock, name) == []


@pytest.mark.parametrize(
    ("argv", "code", "expected"),
    [
        pytest.param(["skip", "{}", "yesterday"], 2, "is over", id="skip a day that is over"),
        pytest.param(["skip", "{}", "2090-01-05"], 2, "no start to leave out", id="skip nothing"),
        pytest.param(["skip", "{}", "nxt"], 2, "is no day", id="skip no day"),
        pytest.param(["skip", "{}", "--count", "0"], 2, "from 1 up", id="skip none"),
        pytest.param(["skip", "{}", "--count", "1000"], 2, "at most", id="skip too many"),
        pytest.param(["skip", "{}", "--cancel"], 5, "no skip to take back", id="no skip"),
        pytest.param(["extend", "{}"], 2, "until when?", id="extend to nowhere"),
        pytest.param(
            ["extend", "{}", "--until", "19:00", "--by", "2h"], 2, "one of", id="extend twice"
        ),
        pytest.param(["extend", "{}", "--by", "0"], 2, "from a second", id="extend by nothing"),
        pytest.param(["extend", "{}", "--by", "soon"], 2, "length of time", id="extend by words"),
        pytest.param(["extend", "{}", "--until", "2020-01-01"], 2, "is past", id="extend back"),
        pytest.param(["extend", "{}", "--until", "tomorrow"], 2, "anyway", id="extend to earlier"),
        pytest.param(["extend", "{}", "--cancel"], 5, "no extension", id="no extension"),
        pytest.param(["hold", "{}"], 2, "until when?", id="hold for how long"),
        pytest.param(["hold", "{}", "--until", "10:99"], 2, "is no moment", id="hold no time"),
        pytest.param(["hold", "{}", "--until", "2020-01-01"], 2, "is past", id="hold in the past"),
        pytest.param(["hold", "{}", "--for", "9999d"], 2, "ten years", id="hold for ever"),
        pytest.param(["hold", "{}", "--cancel"], 5, "no hold to take back", id="no hold"),
        pytest.param(["hold", "nobody", "--for", "1d"], 4, "not found", id="hold nobody"),
        pytest.param(["skip", "nobody"], 4, "not found", id="skip nobody"),
        pytest.param(["extend", "nobody", "--by", "1h"], 4, "not found", id="extend nobody"),
        pytest.param(["hold", "job/{}", "--for", "1d"], 2, "is not a ControlledJob", id="a Job"),
        pytest.param(["why", "calendar/{}"], 2, "is not a Job or", id="why a calendar"),
        pytest.param(["why", "controlledjob/nobody"], 4, "not found", id="why nobody"),
        pytest.param(["why", "jobconfig/nobody"], 4, "not found", id="why no config"),
    ],
)
def test_bad_input_is_refused_with_what_was_expected_and_nothing_is_changed(
    interlock: Program, argv: list[str], code: int, expected: str
) -> None:
    name = an_engine(interlock, "untouched")
    before = spec_of(interlock, f"ctj/{name}")

    assert interlock(*(word.format(name) for word in argv), code=code) == ""

    assert interlock.errors.startswith("error: ")
    assert expected in interlock.errors
    assert spec_of(interlock, f"ctj/{name}") == before


class Contended(Session):
    """A session in which somebody else is faster once, between reading and writing."""

    def __init__(self, args: Namespace, meanwhile: Callable[[], object]) -> None:
        super().__init__(args)
        self._contended = ContendedApi(self.target, meanwhile)

    @property
    def api(self) -> Api:
        return self._contended


class ContendedApi(Api):
    def __init__(self, target: Target, meanwhile: Callable[[], object]) -> None:
        super().__init__(target)
        self._meanwhile = [meanwhile]
        self.versions: list[str] = []

    def patch(self, kind: Kind, namespace: str, name: str, change: Any, **how: Any) -> Any:
        self.versions.append(change["metadata"]["resourceVersion"])
        if self._meanwhile:
            self._meanwhile.pop()()
        return super().patch(kind, namespace, name, change, **how)


def test_a_change_is_worked_out_anew_when_somebody_was_faster(
    interlock: Program, server: Server
) -> None:
    name = a_config(interlock, "contended")
    args = parse(verb_named("get"), get, ["--server", server.url])
    assert args is not None
    session = Contended(args, lambda: interlock("disable", name, "--schedule", "0"))

    try:
        carry_out(session, JOB_CONFIGS, name, "disable", Switching(schedule=1))
    finally:
        session.api.close()

    assert isinstance(session.api, ContendedApi)
    assert len(set(session.api.versions)) == len(session.api.versions) >= 2
    assert all(one["disabled"] for one in spec_of(interlock, f"jc/{name}")["schedules"])


def test_schedules_are_described_and_have_a_history(interlock: Program) -> None:
    config, engine = a_config(interlock, "described"), an_engine(interlock, "described-too")
    for what in (f"jobconfig/{config}", f"controlledjob/{engine}"):
        told = interlock("describe", what)
        assert "Why:\n" in told
        assert "is not running" in told
        assert "Spec:\n" in told
        assert "why" in interlock.json("describe", what)
        assert isinstance(interlock.json("history", what)["items"], list)
    interlock("describe", "jobconfig/nobody", code=4)


def test_the_answers_are_served_to_programs_too(interlock: Program, server: Server) -> None:
    name = a_config(interlock, "served")
    with urlopen(f"{server.url}/jobconfigs/default/{name}/why", timeout=PATIENCE_S) as answer:
        assert json.load(answer)["summary"].startswith(f"{name} is not running; ")
    for path in ("/jobconfigs", "/controlledjobs/default/nobody/why", "/jobconfigs/default/x/y"):
        with pytest.raises(HTTPError) as refused:
            urlopen(server.url + path, timeout=PATIENCE_S)
        assert refused.value.code == 404
        refused.value.close()


def test_completion_knows_the_names_of_schedules(interlock: Program) -> None:
    a_config(interlock, "complete-me")
    an_engine(interlock, "complete-too")
    for verb in ("run", "enable", "disable"):
        assert "complete-me" in interlock("__complete", verb, "compl").split()
    for verb in ("start", "restart", "skip", "extend", "hold"):
        assert "complete-too" in interlock("__complete", verb, "compl").split()
