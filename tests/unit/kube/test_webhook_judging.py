"""The webhook refuses what our own door refuses, in the same words, and of changes only those."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import msgspec
import pytest

from interlock.api.answers import refusal_of
from interlock.errors import BadRequestError, InvalidError, Problem
from interlock.kube.webhook.app import COMPLETE_PATH, VALIDATE_PATH, WebhookApp
from interlock.kube.webhook.judging import KEPT, UNREADABLE, complete, judge
from interlock.kube.webhook.review import (
    Change,
    UserInfo,
    Verdict,
    answer_review,
    read_review,
    refusal,
)
from interlock.resources.door.patches import json_patch
from interlock.resources.door.validation import read_resource
from interlock.resources.job import JOB_FINALIZER
from interlock.resources.modes import Mode, problems_for_mode
from interlock.testing.builders import T0

CONTROLLER = "system:serviceaccount:interlock-system:interlock"
CONTROLLERS = frozenset({CONTROLLER})
POD: dict[str, Any] = {"pod": {"spec": {"containers": [{"name": "a", "image": "a"}]}}}
OTHER_POD: dict[str, Any] = {"pod": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
MANAGED = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]
ADMITTED = {"phase": "Starting", "admission": {"phase": "Admitted"}}
ENDED = ADMITTED | {"phase": "Succeeded", "execution": {"result": "Succeeded"}}
HELD = [JOB_FINALIZER]
DUE = POD | {"killAt": "2026-01-05T12:00:00Z"}
LATER = POD | {"killAt": "2026-01-05T12:00:01Z"}


def a_body(spec: Any, *, finalizers: list[str] | None = None, **more: Any) -> dict[str, Any]:
    """A Job as an API server sends it."""
    metadata = {"name": "a", "namespace": "default", "uid": "u", "managedFields": MANAGED}
    if finalizers is not None:
        metadata["finalizers"] = finalizers
    body = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": metadata}
    return body | {"spec": spec} | more


def creation(body: dict[str, Any]) -> Change:
    return Change(uid="1", operation="CREATE", object=body)


def update(old: dict[str, Any], new: dict[str, Any], user: str = "somebody") -> Change:
    info = UserInfo(username=user)
    return Change(uid="1", operation="UPDATE", object=new, old_object=old, user_info=info)


def paths(verdict: Verdict) -> list[str]:
    return [problem.path for problem in verdict.problems]


class TestCreation:
    @pytest.mark.parametrize("spec", [POD, {"noop": {}}, POD | {"locks": [{"key": "db"}]}])
    def test_a_good_job_passes(self, spec: dict[str, Any]) -> None:
        assert judge(creation(a_body(spec)), CONTROLLERS, T0) == Verdict(name="a")

    @pytest.mark.parametrize(
        "spec",
        [
            POD | {"noop": {}},
            {},
            None,
            POD | {"retries": {"limit": -1}, "locks": [{"key": "a b"}], "title": "a\nb"},
            {"pod": {"spec": {"containers": [{"name": "a", "args": ["${task.indx}"]}]}}},
            {"noop": {}, "killAt": "0001-01-01T00:00:00+14:00"},
            POD | {"args": {"big": "x" * (1 << 20)}},
        ],
    )
    def test_what_our_door_refuses_is_refused_in_the_same_words(self, spec: Any) -> None:
        body = a_body(spec)
        ours = body | {"metadata": {"name": "a", "namespace": "default", "uid": "u"}}

        with pytest.raises(InvalidError) as refused:
            read_resource(json.dumps(ours).encode(), "Job")

        assert judge(creation(body), CONTROLLERS, T0).problems == refused.value.problems

    @pytest.mark.parametrize(
        ("kind", "path", "spec"),
        [
            ("JobConfig", "spec.schedules[0].cron", {
                "template": {"spec": POD}, "schedules": [{"cron": "0 2 * *"}]}),
            ("JobConfig", "spec.template.spec.process", {
                "template": {"spec": {"process": {"command": ["a"]}}}}),
            ("ControlledJob", "spec.windows[0].days", {
                "jobTemplate": {"spec": POD},
                "windows": [{"from": "09:00", "to": "10:00", "days": "MON-FRY"}]}),
            ("ControlledJob", "spec.jobTemplate.spec.process", {
                "jobTemplate": {"spec": {"process": {"command": ["a"]}}}}),
            ("Calendar", "spec.days[0].day", {"days": [{"day": "13-13"}]}),
        ],
    )  # fmt: skip
    def test_what_makes_jobs_is_judged_too(
        self, kind: str, path: str, spec: dict[str, Any]
    ) -> None:
        change = creation(a_body(spec, kind=kind))
        verdict = judge(change, CONTROLLERS, T0)

        assert paths(verdict) == [path]
        answer = json.loads(answer_review(change, verdict))["response"]["status"]
        assert answer["message"].startswith(f'{kind}.interlock.dev "a" is invalid: {path}')

    def test_weekdays_that_quartz_numbers_otherwise_are_told(self) -> None:
        schedules = [{"cron": "0 15 10 ? * 2-6 *"}]
        spec = {"template": {"spec": POD}, "schedules": schedules}
        new = a_body(spec, kind="JobConfig")
        old = a_body(spec | {"schedules": []}, kind="JobConfig")

        for change in (creation(new), update(old, new)):
            verdict = judge(change, CONTROLLERS, T0)
            assert verdict.problems == ()
            (warning,) = verdict.warnings
            assert warning.startswith("spec.schedules[0].cron: weekday numbers")
        assert judge(update(new, new), CONTROLLERS, T0).warnings == ()

    def test_a_process_is_refused_with_an_explanation(self) -> None:
        verdict = judge(creation(a_body({"process": {"command": ["true"]}})), CONTROLLERS, T0)

        (problem,) = verdict.problems
        assert problem.path == "spec.process"
        assert "a cluster runs no processes" in problem.message

    def test_all_problems_are_told_at_once(self) -> None:
        spec = {"process": {"command": []}, "title": "a\nb"}
        verdict = judge(creation(a_body(spec)), CONTROLLERS, T0)

        assert set(paths(verdict)) == {"spec.process.command", "spec.title", "spec.process"}

    def test_rules_are_told_beside_wrong_types(self) -> None:
        spec = {"process": {"command": [True]}, "timeout": 5, "locks": [{"key": "", "limit": 0}]}
        verdict = judge(creation(a_body(spec)), CONTROLLERS, T0)
        assert set(paths(verdict)) == {
            "spec.process",
            "spec.process.command[0]",
            "spec.timeout",
            "spec.locks[0].key",
            "spec.locks[0].limit",
        }

    def test_what_is_not_even_an_object_is_refused(self) -> None:
        assert judge(creation(a_body([1, 2])), CONTROLLERS, T0).problems

    @pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
    def test_a_status_is_no_business_of_ours(self, operation: str) -> None:
        bad = a_body({"noop": 7})
        change = Change(uid="1", operation=operation, sub_resource="status", object=bad)

        assert judge(change, CONTROLLERS, T0) == Verdict()


BAD = POD | {"title": "a\nb"}


class TestUpdate:
    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            pytest.param(POD, OTHER_POD, [], id="a waiting Job may change"),
            pytest.param(POD, BAD, ["spec.title"], id="into nothing bad"),
            pytest.param(BAD, BAD, [], id="what was bad may stay as it is"),
            pytest.param(BAD, BAD | {"suspend": True}, [], id="and be suspended"),
            pytest.param(
                BAD, BAD | {"priority": 1 << 40}, ["spec.priority"], id="but get no worse"
            ),
            pytest.param(
                {"process": {"command": ["a"]}},
                {"process": {"command": ["a"]}, "killAt": "2026-01-05T12:00:00Z"},
                [],
                id="a process that got in can be killed",
            ),
            pytest.param({"noop": 7}, POD, [], id="what cannot be read can be mended"),
            pytest.param(DUE, POD, ["spec.killAt"], id="a stop that is due is not taken back"),
            pytest.param(DUE, LATER, ["spec.killAt"], id="nor put off"),
            pytest.param(LATER, POD, [], id="one that is not due is"),
        ],
    )
    def test_only_what_changed_is_judged(self, old: Any, new: Any, expected: list[str]) -> None:
        assert paths(judge(update(a_body(old), a_body(new)), CONTROLLERS, T0)) == expected

    @pytest.mark.parametrize(
        ("status", "change", "expected"),
        [
            (ADMITTED, OTHER_POD, ["spec.pod"]),
            (ADMITTED, POD | {"priority": 3}, []),
            (ENDED, POD | {"priority": 3}, ["spec.priority"]),
            (ENDED, POD | {"ttlAfterFinished": "1h"}, []),
        ],
    )
    def test_what_tasks_are_made_of_stays(
        self, status: Any, change: Any, expected: list[str]
    ) -> None:
        old, new = a_body(POD, status=status), a_body(change, status=status)

        assert paths(judge(update(old, new), CONTROLLERS, T0)) == expected

    @pytest.mark.parametrize("status", [{}, ADMITTED])
    def test_nobody_takes_our_finalizer_off_a_job_that_goes_on(self, status: Any) -> None:
        old = a_body(POD, finalizers=["x", *HELD], status=status)

        verdict = judge(update(old, a_body(POD, finalizers=["x"], status=status)), CONTROLLERS, T0)

        assert paths(verdict) == ["metadata.finalizers"]

    @pytest.mark.parametrize("spec", [POD, BAD, {"noop": 7}])
    def test_the_controller_does(self, spec: Any) -> None:
        change = update(a_body(spec, finalizers=HELD), a_body(spec), CONTROLLER)

        assert judge(change, CONTROLLERS, T0) == Verdict()

    def test_anybody_does_once_it_has_ended(self) -> None:
        old = a_body(BAD, finalizers=HELD, status=ENDED)

        assert not judge(update(old, a_body(BAD, status=ENDED)), CONTROLLERS, T0).problems

    def test_a_job_that_cannot_be_read_may_be_let_go(self) -> None:
        """The controller cannot read it either, so somebody else has to decide."""
        old = a_body({"noop": 7}, finalizers=HELD)

        verdict = judge(update(old, a_body({"noop": 7})), CONTROLLERS, T0)

        assert not verdict.problems
        assert verdict.warnings == (UNREADABLE,)

    def test_a_deletion_passes(self) -> None:
        change = Change(uid="1", operation="DELETE", old_object=a_body(POD))

        assert judge(change, CONTROLLERS, T0) == Verdict()


class TestCompletion:
    @pytest.mark.parametrize("finalizers", [None, [], ["x"], ["x", "y"]])
    def test_a_new_job_gets_our_finalizer(self, finalizers: list[str] | None) -> None:
        body = a_body(POD, finalizers=finalizers)

        verdict = complete(creation(body), CONTROLLERS, T0)

        made: Any = json_patch(body, list(verdict.patch))
        assert made["metadata"]["finalizers"] == [*(finalizers or ()), JOB_FINALIZER]
        assert not verdict.warnings

    def test_one_that_has_it_is_left_alone(self) -> None:
        assert complete(creation(a_body(POD, finalizers=HELD)), CONTROLLERS, T0) == Verdict()

    def test_whoever_leaves_it_out_is_warned_and_it_stays(self) -> None:
        verdict = complete(update(a_body(POD, finalizers=HELD), a_body(POD)), CONTROLLERS, T0)

        made: Any = json_patch(a_body(POD), list(verdict.patch))
        assert made["metadata"]["finalizers"] == HELD
        assert verdict.warnings == (KEPT,)

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (update(a_body(POD, finalizers=HELD), a_body(POD), CONTROLLER), "the controller"),
            (update(a_body(POD), a_body(OTHER_POD)), "it had none"),
            (update(a_body(POD, finalizers=HELD, status=ENDED), a_body(POD)), "it has ended"),
            (update(a_body({"noop": 7}, finalizers=HELD), a_body({"noop": 7})), "unreadable"),
        ],
    )
    def test_it_may_go(self, change: Change, why: str) -> None:
        assert complete(change, CONTROLLERS, T0) == Verdict(), why


UNKNOWN_TASK = {
    "name": "a-0-0",
    "index": 0,
    "attempt": 0,
    "state": "Unknown",
    "createdAt": "2026-01-05T12:00:00Z",
}
UNKNOWN = ADMITTED | {"phase": "Unknown", "execution": {"active": [UNKNOWN_TASK]}}


def noted(body: dict[str, Any], **notes: str) -> dict[str, Any]:
    """The object with annotations of ours."""
    annotations = {f"interlock.dev/{name.replace('_', '-')}": text for name, text in notes.items()}
    return body | {"metadata": body["metadata"] | {"annotations": annotations}}


class TestMarks:
    @pytest.mark.parametrize(
        ("change", "wrong"),
        [
            pytest.param(
                update(a_body(POD, status=ADMITTED), noted(a_body(POD), release="I looked")),
                ['metadata.annotations["interlock.dev/release"]'],
                id="a release that comes too early",
            ),
            pytest.param(
                update(a_body(POD, status=UNKNOWN), noted(a_body(POD), release="I looked")),
                [],
                id="a release of what is unknown",
            ),
            pytest.param(
                update(a_body(POD), noted(a_body(POD), scheduled_at="2026-01-05T12:00:00Z")),
                ['metadata.annotations["interlock.dev/scheduled-at"]'],
                id="a due time of its own",
            ),
            pytest.param(
                creation(noted(a_body(POD), whatever="1")),
                ['metadata.annotations["interlock.dev/whatever"]'],
                id="one that nobody knows",
            ),
            pytest.param(
                update(a_body(POD), noted(a_body(POD), whatever="1"), CONTROLLER),
                [],
                id="the controller's own",
            ),
        ],
    )
    def test_a_mark_that_means_nothing_now_is_refused(
        self, change: Change, wrong: list[str]
    ) -> None:
        assert paths(judge(change, CONTROLLERS, T0)) == wrong

    @pytest.mark.parametrize(
        ("old", "new", "mark"),
        [
            pytest.param(None, noted(a_body(POD), creator="root"), "creator", id="creates"),
            pytest.param(
                a_body(POD), noted(a_body(DUE), stopped_by="root"), "stopped-by", id="stops"
            ),
            pytest.param(
                a_body(POD), a_body(POD | {"suspend": True}), "suspended-by", id="suspends"
            ),
            pytest.param(
                a_body(POD, status=UNKNOWN),
                noted(a_body(POD, status=UNKNOWN), release="gone", released_by="root"),
                "released-by",
                id="releases",
            ),
        ],
    )
    def test_who_asks_is_what_the_api_server_has_proven(
        self, old: dict[str, Any] | None, new: dict[str, Any], mark: str
    ) -> None:
        user = UserInfo(username="alice")
        change = Change(uid="1", operation="", object=new, old_object=old, user_info=user)

        made: Any = json_patch(new, list(complete(change, CONTROLLERS, T0).patch))

        assert made["metadata"]["annotations"][f"interlock.dev/{mark}"] == "alice"

    def test_an_exception_is_in_the_name_of_whoever_makes_it(self) -> None:
        hold = {"action": "Hold", "from": "2026-01-05T12:00:00Z", "until": "2026-01-06T12:00:00Z"}
        old = {
            **a_body({"jobTemplate": {"spec": POD}, "windows": [], "timezone": {"name": "UTC"}}),
            "kind": "ControlledJob",
        }
        new = old | {"spec": old["spec"] | {"overrides": [hold | {"by": "root"}]}}

        made: Any = json_patch(new, list(complete(update(old, new), CONTROLLERS, T0).patch))

        assert made["spec"]["overrides"][0]["by"] == "somebody"

    def test_whoever_leaves_a_mark_out_is_warned_and_it_stays(self) -> None:
        old = noted(a_body(POD), creator="alice")

        verdict = complete(update(old, a_body(POD)), CONTROLLERS, T0)

        made: Any = json_patch(a_body(POD), list(verdict.patch))
        assert made["metadata"]["annotations"] == {"interlock.dev/creator": "alice"}
        assert verdict.warnings == ("the mark interlock.dev/creator stays",)


class TestReview:
    PROBLEMS = (Problem("spec.title", "expected one line", "a\nb"), Problem("spec.pod", "no"))

    @pytest.mark.parametrize("problems", [PROBLEMS, PROBLEMS[:1]])
    def test_a_refusal_reads_as_our_servers(self, problems: tuple[Problem, ...]) -> None:
        ours = refusal_of(InvalidError("Job", "a", problems)).status

        found = msgspec.to_builtins(refusal("a", problems))

        wanted = msgspec.to_builtins(ours)
        wanted = {name: value for name, value in wanted.items() if name in found}
        del found["details"]["uid"], found["details"]["retryAfterSeconds"]
        assert found == wanted

    def test_an_answer_names_the_question(self) -> None:
        change = creation(a_body(POD))
        answer = json.loads(answer_review(change, complete(change, CONTROLLERS, T0)))["response"]

        assert (answer["uid"], answer["allowed"], answer["patchType"]) == ("1", True, "JSONPatch")
        assert json.loads(base64.b64decode(answer["patch"]))[0]["op"] == "add"

    @pytest.mark.parametrize(
        "body",
        [b"", b"{", b"[]", b'{"kind": "AdmissionReview"}', b"\xff", b'{"a":' * 10_000,
         b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview",'
         b'"request":{"uid":"1","operation":"CREATE"}}'],
    )  # fmt: skip
    def test_what_is_no_review_is_refused(self, body: bytes) -> None:
        with pytest.raises(BadRequestError):
            read_review(body)


def ask(path: str, body: bytes, method: str = "POST") -> tuple[int, bytes]:
    """What the application answers."""
    sent: list[Any] = []
    parts = [body[:10], body[10:]]

    async def receive() -> Any:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path}
    asyncio.run(WebhookApp(CONTROLLERS, lambda: T0)(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


class TestApp:
    def a_review(self, spec: Any) -> bytes:
        request = {"uid": "7", "operation": "CREATE", "object": a_body(spec), "dryRun": True}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return json.dumps(review | {"request": request}).encode()

    def test_it_answers_both_questions(self) -> None:
        status, judged = ask(VALIDATE_PATH, self.a_review({"process": {"command": ["a"]}}))
        assert status == 200
        response = json.loads(judged)["response"]
        assert (response["allowed"], response["status"]["code"]) == (False, 422)

        status, completed = ask(COMPLETE_PATH, self.a_review(POD))
        assert json.loads(completed)["response"]["allowed"] is True

    @pytest.mark.parametrize(
        ("path", "method", "body", "status"),
        [
            ("/", "POST", b"{}", 404),
            (VALIDATE_PATH, "GET", b"", 405),
            (VALIDATE_PATH, "POST", b"nonsense", 400),
            (VALIDATE_PATH, "POST", b"x" * ((16 << 20) + 1), 400),
        ],
        ids=["elsewhere", "read", "nonsense", "huge"],
    )
    def test_anything_else_is_refused(
        self, path: str, method: str, body: bytes, status: int
    ) -> None:
        assert ask(path, body, method)[0] == status


def test_the_rule_about_modes_is_that_of_the_resources() -> None:
    job, _ = read_resource(json.dumps(a_body({"process": {"command": ["a"]}}) | {
        "metadata": {"name": "a"}}).encode(), "Job")  # fmt: skip

    found = judge(creation(a_body({"process": {"command": ["a"]}})), CONTROLLERS, T0).problems

    assert found == problems_for_mode(job.spec, Mode.CLUSTER)  # type: ignore[attr-defined]
