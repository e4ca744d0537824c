"""HTTP actions: each command for whoever the door knows, bad input refused field by field."""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from interlock.api.actions import Actions
from interlock.api.callers import trusted
from interlock.api.requests import Request
from interlock.api.security import Guard
from interlock.commands.command import Command
from interlock.commands.table import COMMANDS
from interlock.errors import ConflictError
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Key, Resource
from interlock.resources.tasks import ExecutionStatus, TaskState, TaskStatus
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryJournal, MemoryStore
from interlock.testing.asking import JOB, JOBS, Asker, Reply, asking
from interlock.testing.builders import T0

CONFIGS = JOBS.replace("/jobs", "/jobconfigs")
ENGINES = JOBS.replace("/jobs", "/controlledjobs")
WORK: dict[str, Any] = {"spec": {"process": {"command": ["true"]}}}
CONFIG: dict[str, Any] = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "JobConfig",
    "metadata": {"name": "report"},
    "spec": {
        "template": {"spec": {"process": {"command": ["echo", "${option.region}"]}}},
        "options": [{"name": "region", "default": "emea"}],
        "schedules": [{"cron": "0 3 * * *"}],
    },
}
#: Open from 9 to 17; T0 is noon.
ENGINE: dict[str, Any] = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "ControlledJob",
    "metadata": {"name": "engine"},
    "spec": {"jobTemplate": WORK, "windows": [{"from": "09:00", "to": "17:00"}]},
}

#: Orders about operations: each needs a reason.
OF_OPERATIONS = ("go-forward", "roll-back", "resolve", "let-go")


R = TypeVar("R", bound=Resource)


class NamingGuard:
    """A guard that has found out who asks."""

    async def admit(self, request: Request) -> None:
        request.caller = trusted("ann")


class NamelessGuard:
    """A guard that lets in whom it cannot name."""

    async def admit(self, request: Request) -> None:
        request.caller = trusted()


class ContendedStore(MemoryStore):
    """A store in which somebody else is faster, so many times."""

    losses = 0

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        if self.losses:
            self.losses -= 1
            raise ConflictError(resource.key, expected="1", found="2")
        return await super().update(resource, dry_run=dry_run)


class Desk:
    """A server with one object of each kind."""

    def __init__(self, guard: Guard | None = None) -> None:
        self.journal = MemoryJournal()
        self.store = ContendedStore(lambda: T0, SeededIdentities(Random(7)))
        self.asker = Asker(security=guard or NamingGuard(), journal=self.journal, store=self.store)
        self._ask = asking(self.asker)
        for path, body in ((JOBS, JOB), (CONFIGS, CONFIG), (ENGINES, ENGINE)):
            assert self._ask("POST", path, body).status == 201

    def order(self, path: str, body: Any = None, media: str = "application/json") -> Reply:
        headers = {"content-type": media} if body is not None else {}
        return self._ask("POST", path, body, headers)

    def stored(self, path: str) -> Any:
        return self._ask("GET", path).json

    def history(self, kind: str, name: str) -> list[str]:
        rows = run_now(self.journal.read(Key(kind, "default", name)))
        return [entry.reason for _, entry in reversed(rows) if entry.room == "api"]

    def lose(self) -> None:
        """Have the Job become Unknown."""
        job = run_now(self.store.get(Key("Job", "default", "hello")))
        assert isinstance(job, Job)
        task = TaskStatus(name="t", index=0, attempt=0, state=TaskState.UNKNOWN, created_at=T0)
        status = JobStatus(
            phase=JobPhase.UNKNOWN,
            admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
            execution=ExecutionStatus(total=1, started_at=T0, active=(task,)),
        )
        run_now(self.store.update_status(replace(job, status=status)))


@pytest.fixture
def desk() -> Desk:
    return Desk()


STOP = "/jobs/default/hello/stop"


def test_a_job_is_stopped_in_the_name_of_whoever_the_door_knows(desk: Desk) -> None:
    reply = desk.order(STOP, {"reason": "month end"})

    assert (reply.status, reply.json["message"]) == (200, "job/hello stopping")
    assert reply.json["object"] == desk.stored(f"{JOBS}/hello")
    assert reply.json["object"]["spec"]["killAt"] == "2026-01-05T12:00:00Z"
    notes = reply.json["object"]["metadata"]["annotations"]
    assert notes["interlock.dev/stopped-by"] == "ann"
    assert notes["interlock.dev/stopped-because"] == "stopped: month end"
    assert desk.history("Job", "hello") == ["stopped by ann"]


def test_the_body_cannot_say_who_orders(desk: Desk) -> None:
    reply = desk.order(STOP, {"who": "mallory"})

    assert (reply.status, reply.json["details"]["causes"][0]["field"]) == (422, "who")
    assert "killAt" not in desk.stored(f"{JOBS}/hello")["spec"]


@pytest.mark.parametrize(
    ("guard", "recorded"),
    [
        pytest.param(NamingGuard(), "ann", id="a proven name"),
        pytest.param(NamelessGuard(), None, id="nobody is known"),
    ],
)
def test_who_orders_is_who_is_proven_to(guard: Guard, recorded: str | None) -> None:
    desk = Desk(guard)
    notes = [
        desk.order(path).json["object"]["metadata"]["annotations"]
        for path in (STOP, "/jobconfigs/default/report/run")
    ]

    assert notes[0].get("interlock.dev/stopped-by") == recorded
    assert notes[1].get("interlock.dev/creator") == recorded


@pytest.mark.parametrize("guard", [NamingGuard(), NamelessGuard()])
def test_a_client_that_says_who_orders_is_refused(guard: Guard) -> None:
    desk = Desk(guard)

    refused = desk.order(f"{STOP}?by=bob")

    assert (refused.status, refused.json["message"]) == (
        400,
        "by: unknown parameter; expected dryRun",
    )
    assert "killAt" not in desk.stored(f"{JOBS}/hello")["spec"]


def test_apply_is_told_nobody_by_the_client(desk: Desk) -> None:
    assert desk.order("/jobs/default/hello/apply?by=bob", {}).status == 400


def test_ordering_twice_is_as_good_as_once(desk: Desk) -> None:
    first, second = desk.order(STOP), desk.order(STOP)

    assert (first.status, second.status) == (200, 200)
    assert first.json["object"] == second.json["object"]
    assert desk.history("Job", "hello") == ["stopped by ann"]


def test_a_dry_run_changes_nothing(desk: Desk) -> None:
    before = desk.stored(f"{JOBS}/hello")
    reply = desk.order(f"{STOP}?dryRun=All")

    assert (reply.status, reply.json["message"]) == (200, "job/hello stopping")
    assert "killAt" in reply.json["object"]["spec"]
    assert desk.stored(f"{JOBS}/hello") == before
    assert desk.history("Job", "hello") == []


#: An order of each command that is carried out, and a part of what is told.
GOOD = [
    ("/jobs/default/hello/stop", None, "stopping"),
    ("/jobs/default/hello/kill", {}, "being killed"),
    ("/jobs/default/hello/suspend", {"reason": "why"}, "suspended"),
    ("/jobs/default/hello/resume", None, "resumed"),
    ("/jobs/default/hello/retry", None, "job/hello-retry-"),
    ("/jobconfigs/default/report/run", {"options": {"region": "apac"}}, "job/report-"),
    ("/jobconfigs/default/report/disable", {"schedule": 0}, "schedule 0 disabled"),
    ("/jobconfigs/default/report/enable", None, "already enabled"),
    ("/jobconfigs/default/report/suspend", None, "suspended"),
    ("/jobconfigs/default/report/resume", None, "not suspended"),
    ("/controlledjobs/default/engine/start", None, "created"),
    ("/controlledjobs/default/engine/restart", {"reason": "new"}, "created"),
    ("/controlledjobs/default/engine/stop", None, "runs nothing"),
    ("/controlledjobs/default/engine/skip", {"when": "next"}, "does not start at 09:00 UTC"),
    ("/controlledjobs/default/engine/extend", {"by": "2h"}, "ends 19:00 instead of 17:00"),
    ("/controlledjobs/default/engine/hold", {"until": "tomorrow"}, "held until tomorrow"),
    ("/controlledjobs/default/engine/suspend", None, "suspended"),
    ("/controlledjobs/default/engine/resume", None, "not suspended"),
]


@pytest.mark.parametrize(("path", "body", "told"), GOOD, ids=[path for path, _, _ in GOOD])
def test_every_command_can_be_ordered(desk: Desk, path: str, body: Any, told: str) -> None:
    reply = desk.order(path, body)

    assert reply.status == 200, reply.body
    assert told in reply.json["message"]
    assert reply.json["object"]["metadata"]["uid"]


def test_no_command_is_left_out() -> None:
    def path_of(command: Command) -> str:
        names = {"jobs": "hello", "jobconfigs": "report", "controlledjobs": "engine"}
        plural = command.kind.plural
        return f"/{plural}/default/{names[plural]}/{command.name}"

    tried = {path for path, _, _ in GOOD} | {
        f"/jobs/default/hello/{name}" for name in ("release", "requeue", *OF_OPERATIONS)
    }
    assert {path_of(command) for command in COMMANDS} == tried


def test_a_requeue_is_recorded_with_its_reason_and_whoever_gave_it(desk: Desk) -> None:
    path = "/jobs/default/hello/requeue"
    assert desk.order(path).status == 422, "a reason is required"
    waits = desk.order(path, {"reason": "slow"}).json
    assert waits["message"] == "job/hello waits already"

    desk.lose()
    answer = desk.order(path, {"reason": "slow"})

    assert answer.status == 200
    notes = answer.json["object"]["metadata"]["annotations"]
    assert notes["interlock.dev/requeue-round"] == "0"
    assert notes["interlock.dev/requeued-by"] == "ann"
    assert desk.history("Job", "hello") == ["requeued by ann: slow"]


def test_a_release_needs_a_job_that_is_unknown_and_a_reason(desk: Desk) -> None:
    path = "/jobs/default/hello/release"
    early = desk.order(path, {"reason": "sure"})
    assert (early.status, early.json["reason"]) == (409, "Conflict")
    assert "needs nobody's word" in early.json["message"]
    assert early.json["details"]["causes"] == [
        {
            "reason": "Suggestion",
            "message": "what it holds passes on when it ends; stop it with: interlock stop hello",
        }
    ]
    desk.lose()
    assert desk.order(path).status == 422
    assert desk.order(path, {"reason": ""}).status == 422
    assert desk.order(path, {"reason": "looked"}).status == 200
    assert desk.history("Job", "hello") == ["released by ann: looked"]


def test_what_a_person_starts_carries_their_name(desk: Desk) -> None:
    for path in ("/jobconfigs/default/report/run", "/controlledjobs/default/engine/start"):
        made = desk.order(path).json["object"]
        assert made["kind"] == "Job"
        assert made["metadata"]["annotations"]["interlock.dev/creator"] == "ann"
        assert made == desk.stored(f"{JOBS}/{made['metadata']['name']}")


def test_a_restart_shows_the_new_job_and_the_ones_it_stopped(desk: Desk) -> None:
    old = desk.order("/controlledjobs/default/engine/start").json["object"]
    reply = desk.order("/controlledjobs/default/engine/restart", {"reason": "new data"}).json

    assert reply["object"]["metadata"]["name"] != old["metadata"]["name"]
    (stopped,) = reply["also"]
    assert stopped["metadata"]["uid"] == old["metadata"]["uid"]
    assert stopped["spec"]["killAt"] == "2026-01-05T12:00:00Z"


def test_a_restart_makes_one_job_however_often_others_are_faster(desk: Desk) -> None:
    desk.order("/controlledjobs/default/engine/start")
    desk.store.losses = 3
    assert desk.order("/controlledjobs/default/engine/restart").status == 200
    assert len(desk.stored(JOBS)["items"]) == 3  # hello, the old one, and the new one.

    desk.store.losses = 1000
    assert desk.order("/controlledjobs/default/engine/restart").status == 409
    assert len(desk.stored(JOBS)["items"]) == 4


def test_an_order_is_worked_out_anew_when_somebody_is_faster(desk: Desk) -> None:
    desk.store.losses = 3
    assert desk.order(STOP).status == 200
    desk.store.losses = 1000
    refused = desk.order("/jobs/default/hello/suspend")
    assert (refused.status, refused.json["reason"]) == (409, "Conflict")


def test_a_number_that_is_taken_by_another_is_passed_over(desk: Desk) -> None:
    name = desk.order("/controlledjobs/default/engine/start?dryRun=All").json["object"]["metadata"][
        "name"
    ]
    other = {**JOB, "metadata": {"name": name}}
    assert desk._ask("POST", JOBS, other).status == 201

    made = desk.order("/controlledjobs/default/engine/start").json["object"]["metadata"]["name"]
    assert made != name


@pytest.mark.parametrize(
    ("path", "body", "code", "field"),
    [
        pytest.param(STOP, {"raeson": "x"}, 422, "raeson", id="an unknown field"),
        pytest.param(STOP, {"reason": 3}, 422, "reason", id="a bad type"),
        pytest.param(STOP, {"reason": "a\nb"}, 422, "reason", id="more than a line"),
        pytest.param("/jobconfigs/default/report/run", {"policy": "Maybe"}, 422, "policy",
                     id="no such choice"),
        pytest.param("/jobconfigs/default/report/run", {"options": {"regoin": "x"}}, 422,
                     "options.regoin", id="no such option"),
        pytest.param("/jobconfigs/default/report/run", {"after": "soon"}, 422, "after",
                     id="no duration"),
        pytest.param("/jobconfigs/default/report/run", {"after": "4000d"}, 422, "after",
                     id="too long"),
        pytest.param("/jobconfigs/default/report/run", {"name": "Not A Name"}, 422,
                     "metadata.name", id="no name"),
        pytest.param("/jobconfigs/default/report/enable", {"schedule": -1}, 422, "schedule",
                     id="below the first"),
        pytest.param("/controlledjobs/default/engine/skip", {"count": 1000}, 422, "count",
                     id="too many"),
        pytest.param("/controlledjobs/default/engine/hold", {}, 422, "until", id="no end"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_field(
    desk: Desk, path: str, body: Any, code: int, field: str
) -> None:
    reply = desk.order(path, body)

    assert reply.status == code
    assert field in {cause.get("field", "") for cause in reply.json["details"]["causes"]}, (
        reply.json
    )


@pytest.mark.parametrize(
    ("path", "body", "media", "code"),
    [
        pytest.param(STOP, b"{", "application/json", 400, id="no JSON"),
        pytest.param(STOP, b"[]", "application/json", 400, id="no object"),
        pytest.param(STOP, b"a: 1", "application/yaml", 415, id="YAML"),
        pytest.param(f"{STOP}?dryRun=Some", b"", "application/json", 400, id="no dry run"),
        pytest.param(f"{STOP}?force=true", b"", "application/json", 400, id="no such parameter"),
        pytest.param("/jobs/default/nobody/stop", b"", "application/json", 404, id="nobody"),
        pytest.param("/jobs/elsewhere/hello/stop", b"", "application/json", 404, id="elsewhere"),
        pytest.param("/jobs/default/hello/explode", b"", "application/json", 404, id="no command"),
    ],
)
def test_what_is_no_order(desk: Desk, path: str, body: bytes, media: str, code: int) -> None:
    assert desk.order(path, body, media).status == code


def test_an_unknown_field_comes_with_the_one_that_was_meant(desk: Desk) -> None:
    assert "did you mean reason?" in desk.order(STOP, {"raeson": "x"}).json["message"]


@pytest.mark.parametrize(
    ("prepare", "path", "body", "told"),
    [
        pytest.param("suspend", "start", None, "is suspended", id="suspended"),
        pytest.param("hold", "start", None, "is held until", id="held"),
        pytest.param("", "skip", {"cancel": True}, "no skip to take back", id="no exception"),
    ],
)
def test_what_the_state_does_not_allow(
    desk: Desk, prepare: str, path: str, body: Any, told: str
) -> None:
    if prepare:
        how = {"until": "tomorrow"} if prepare == "hold" else None
        assert desk.order(f"/controlledjobs/default/engine/{prepare}", how).status == 200
    reply = desk.order(f"/controlledjobs/default/engine/{path}", body)

    assert (reply.status, reply.json["code"]) == (409, 409)
    assert told in reply.json["message"]


def test_a_name_that_is_taken_is_told_as_such(desk: Desk) -> None:
    reply = desk.order("/jobconfigs/default/report/run", {"name": "hello"})

    assert (reply.status, reply.json["reason"]) == (409, "AlreadyExists")


@pytest.mark.parametrize(
    ("how", "value"),
    [
        pytest.param({"texts": {"full": ["yes"]}}, "true", id="a text means a truth"),
        pytest.param({"texts": {"tables": ["a", "b,c"]}}, "a,b,c", id="several texts of a Multi"),
        pytest.param({"texts": {}}, "", id="none"),
    ],
)
def test_options_are_given_as_texts(desk: Desk, how: Any, value: str) -> None:
    tables = {"name": "tables", "type": "Multi", "values": ["a", "b", "c"]}
    spec = {"template": WORK, "options": [{"name": "full", "type": "Bool"}, tables]}
    config = {**CONFIG, "metadata": {"name": "typed"}, "spec": spec}
    assert desk._ask("POST", CONFIGS, config).status == 201

    made = desk.order("/jobconfigs/default/typed/run", how).json["object"]

    name = next(iter(how["texts"]), "tables")
    assert made["spec"]["substitutions"][f"option.{name}"] == value


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"texts": {"region": ["a", "b"]}}, id="two texts"),
        pytest.param({"texts": {"region": ["a"]}, "options": {"region": "b"}}, id="both ways"),
    ],
)
def test_an_option_is_given_once(desk: Desk, how: Any) -> None:
    reply = desk.order("/jobconfigs/default/report/run", how)

    assert reply.status == 422
    assert "is given more than once" in reply.json["message"]


def test_what_was_given_for_an_option_is_told(desk: Desk) -> None:
    zones = [{"cron": "0 3 * * *", "timezone": zone} for zone in ("UTC", "Asia/Tokyo")]
    spec = {**CONFIG["spec"], "schedules": zones}
    desk._ask("POST", CONFIGS, {**CONFIG, "metadata": {"name": "zones"}, "spec": spec})

    reply = desk.order("/jobconfigs/default/zones/run", {"at": "tomorrow 19:00"})

    causes = {cause["reason"]: cause["message"] for cause in reply.json["details"]["causes"]}
    assert causes["Found"] == "tomorrow 19:00"


def test_an_option_without_effect_is_warned_of(desk: Desk) -> None:
    template = {"spec": {"process": {"command": ["x"]}, "substitutions": {"option.region": "lab"}}}
    spec = {**CONFIG["spec"], "template": template}
    desk._ask("POST", CONFIGS, {**CONFIG, "metadata": {"name": "fixed"}, "spec": spec})

    reply = desk.order("/jobconfigs/default/fixed/run", {"options": {"region": "apac"}})

    assert (reply.status, len(reply.json["warnings"])) == (200, 1)


def test_the_document_tells_every_action(desk: Desk) -> None:
    document = desk.stored("/openapi/v3/reports")
    routes = Actions(desk.store, None, lambda: T0).routes()  # type: ignore[arg-type]
    for route in routes:
        told = document["paths"][route.path]["post"]
        assert {"200", "400", "401", "403", "404", "409", "415", "422"} <= set(told["responses"])
        schema = told["requestBody"]["content"]["application/json"]["schema"]
        if route.path.endswith("/apply"):
            continue
        assert schema["additionalProperties"] is False
        name = route.path.rpartition("/")[2]
        assert told["requestBody"]["required"] is (name in ("release", "requeue", *OF_OPERATIONS))
    shown = document["components"]["schemas"]["ActionAnswer"]
    assert set(shown["required"]) == {"message", "object"}


# Apply

APPLY = "/jobconfigs/default/report/apply"


def test_what_is_applied_is_created_configured_and_then_left_alone(desk: Desk) -> None:
    new = "/jobconfigs/default/fresh/apply"
    body = {"spec": {"template": WORK, "suspend": True, "schedules": [{"cron": "0 3 * * *"}]}}
    first = desk.order(new, body)
    assert (first.status, first.json["message"]) == (200, "jobconfig/fresh created")
    assert first.json["object"]["metadata"]["annotations"]["interlock.dev/creator"] == "ann"
    assert desk.order(new, body).json["message"] == "jobconfig/fresh unchanged"

    # What others wrote stays, what the file says no more goes.
    desk.order("/jobconfigs/default/fresh/disable")
    changed = desk.order(new, {"spec": {"template": WORK, "schedules": body["spec"]["schedules"]}})

    assert changed.json["message"] == "jobconfig/fresh configured"
    assert "suspend" not in desk.stored(f"{CONFIGS}/fresh")["spec"]
    assert desk.history("JobConfig", "fresh")[-1] == "resumed by ann"


def test_apply_leaves_alone_what_it_never_wrote(desk: Desk) -> None:
    spec = {name: part for name, part in CONFIG["spec"].items() if name != "schedules"}
    desk.order("/jobconfigs/default/report/suspend", {"reason": "why"})

    assert desk.order(APPLY, {"spec": spec}).status == 200

    stored = desk.stored(f"{CONFIGS}/report")
    assert stored["spec"]["suspend"] is True
    assert stored["spec"]["schedules"] == CONFIG["spec"]["schedules"]


def test_apply_takes_no_status(desk: Desk) -> None:
    before = desk.stored(f"{JOBS}/hello")
    reply = desk.order("/jobs/default/hello/apply", {**JOB, "status": {"phase": "Succeeded"}})

    assert reply.status == 200
    assert desk.stored(f"{JOBS}/hello").get("status") == before.get("status")


def test_apply_is_worked_out_anew_when_somebody_is_faster(desk: Desk) -> None:
    desk.store.losses = 3
    assert desk.order(APPLY, {**CONFIG, "spec": {**CONFIG["spec"], "suspend": True}}).status == 200


@pytest.mark.parametrize(
    ("body", "media", "code"),
    [
        pytest.param(b"{", "application/json", 400, id="no JSON"),
        pytest.param(b"[]", "application/json", 400, id="no object"),
        pytest.param(b"metadata: {name: other}", "application/yaml", 400, id="another name"),
        pytest.param(b"metadata: {namespace: x}", "application/yaml", 400, id="elsewhere"),
        pytest.param(b"kind: Job", "application/yaml", 422, id="another kind"),
        pytest.param(b"spec: {tempalte: {}}", "application/yaml", 422, id="a field"),
        pytest.param(b"{}", "application/merge-patch+json", 415, id="a patch"),
    ],
)
def test_what_cannot_be_applied(desk: Desk, body: bytes, media: str, code: int) -> None:
    before = desk.stored(f"{CONFIGS}/report")

    assert desk.order(APPLY, body, media).status == code
    assert desk.stored(f"{CONFIGS}/report") == before
