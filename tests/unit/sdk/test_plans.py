"""Plans ask what they must, again only where nothing can be done twice, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.client.errors import UnreachableError
from interlock.sdk.asking import ask, find_status_api
from interlock.sdk.effects import Call, Reply
from interlock.sdk.errors import (
    BadInput,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    OperationFailed,
    OperationStuck,
    Refused,
    StillRunning,
    TooManyPending,
    Unreachable,
)
from interlock.sdk.known import output_of
from interlock.sdk.record import JobRecord, Outcome
from interlock.sdk.streaming import Events, stream
from interlock.sdk.submitting import SUBMISSION, submit, submit_many
from interlock.sdk.waiting import wait
from support.played_plans import Played, a_site, said

GET = Call(method="GET", path="/x")
ORDER = Call(method="POST", path="/x", repeatable=False)
JOB = {"metadata": {"namespace": "default"}, "spec": {"noop": {}}}
NAMED = {"metadata": {"namespace": "default", "name": "a"}, "spec": {"noop": {}}}
QUEUED = JobRecord(job_id="u", name="a")
LOST = UnreachableError("lost", sent=True)
AWAY = UnreachableError("away")


def refusal(status: int, reason: str, **more: object) -> Reply:
    return said(status, {"reason": reason, "message": "no", **more})


def test_a_busy_server_is_asked_again_when_it_says() -> None:
    play = Played(said(429, retry_after="2"), said(503, retry_after="1"), said(200, {"a": 1}))

    assert play(ask(a_site(), ORDER)).status == 200
    assert play.paused == [2, 1]


@pytest.mark.parametrize(
    ("call", "failure", "expected"),
    [
        pytest.param(GET, LOST, 2, id="a question is asked again when its answer was lost"),
        pytest.param(GET, AWAY, 2, id="and when it was not even sent"),
        pytest.param(ORDER, AWAY, 2, id="an order is given again when it was not sent"),
        pytest.param(ORDER, LOST, 1, id="an order whose answer was lost is not given twice"),
    ],
)
def test_what_is_sent_again(call: Call, failure: Exception, expected: int) -> None:
    play = Played(failure, said(200, {}))

    if expected == 1:
        with pytest.raises(Unreachable) as caught:
            play(ask(a_site(), call))
        assert caught.value.sent
    else:
        assert play(ask(a_site(), call)).status == 200
    assert len(play.asked) == expected


def test_a_server_that_stays_away_is_given_up_after_the_patience() -> None:
    play = Played(*[AWAY] * 100)

    with pytest.raises(Unreachable):
        play(ask(a_site(), GET))
    assert 5 <= play.now < 10


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal(404, "NotFound"), NotFound),
        (refusal(409, "AlreadyExists"), Conflict),
        (refusal(409, "TooManyPending"), TooManyPending),
        (refusal(422, "Invalid"), Invalid),
        (refusal(400, "BadRequest"), Invalid),
        (refusal(401, "Unauthorized"), Forbidden),
        (refusal(403, "Forbidden"), Forbidden),
        (refusal(413, "RequestEntityTooLarge"), Refused),
        (said(500, "what?"), Refused),
    ],
)
def test_a_refusal_is_an_error_of_its_kind(reply: Reply, kind: type[Refused]) -> None:
    with pytest.raises(Refused) as caught:
        Played(reply, reply)(ask(a_site(), GET))
    assert type(caught.value) is kind
    assert caught.value.status == reply.status


def test_what_is_wrong_with_an_object_is_told_field_by_field() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "expected 1", "field": "spec.steps"}]
    reply = refusal(422, "Invalid", details={"causes": causes})

    with pytest.raises(Invalid) as caught:
        Played(reply)(ask(a_site(), GET))
    assert [(one.path, one.message) for one in caught.value.problems] == [
        ("spec.steps", "expected 1")
    ]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(said(405), True, id="it takes POST alone"),
        pytest.param(said(404), False, id="there is no such path"),
        pytest.param(said(403), False, id="a cluster tells strangers nothing about paths"),
    ],
)
def test_a_status_api_is_found_once(reply: Reply, expected: bool) -> None:
    site, play = a_site(has_status_api=None), Played(reply)

    assert play(find_status_api(site)) is expected
    assert play(find_status_api(site)) is expected
    assert len(play.asked) == 1


def test_a_submission_whose_answer_was_lost_is_sent_again_with_its_key() -> None:
    made = {"job_id": "u", "name": "op-1", "namespace": "default", "state": "queued"}
    play = Played(LOST, said(202, made))

    record = play(submit(a_site(), JOB, "k"))

    assert (record.job_id, record.name, record.state) == ("u", "op-1", "queued")
    assert [call.headers["Idempotency-Key"] for call in play.asked] == ["k", "k"]


def test_a_named_job_whose_answer_was_lost_is_known_again() -> None:
    stored = stored_job("a", {SUBMISSION: "k"})
    play = Played(LOST, refusal(409, "AlreadyExists"), said(200, stored))

    assert play(submit(a_site(), NAMED, "k")).name == "a"
    sent = json.loads(play.asked[0].body)
    assert sent["metadata"]["annotations"] == {SUBMISSION: "k"}
    assert "Idempotency-Key" not in play.asked[0].headers


def test_a_name_that_somebody_else_took_is_a_conflict() -> None:
    play = Played(refusal(409, "AlreadyExists"), said(200, stored_job("a", {SUBMISSION: "other"})))

    with pytest.raises(Conflict):
        play(submit(a_site(), NAMED, "k"))


def test_many_are_sent_in_parts_and_answered_in_their_order() -> None:
    answers = [
        said(202, {"items": [accepted(0), accepted(1)]}),
        said(202, {"items": [{"refusal": {"code": 409, "reason": "TooManyPending"}}]}),
    ]
    play = Played(*answers)

    found = play(submit_many(a_site(), [JOB, JOB, JOB], "k", 2))

    assert [getattr(one, "job_id", type(one)) for one in found] == ["u0", "u1", TooManyPending]
    keys = [one["spec"]["idempotencyKey"] for call in play.asked for one in items_of(call)]
    assert keys == ["k-0", "k-1", "k-2"]


def test_on_a_cluster_the_key_makes_the_name() -> None:
    def make(key: str) -> str:
        play = Played(said(201, stored_job("a")))
        play(submit(a_site(has_status_api=False), JOB, key))
        return str(json.loads(play.asked[0].body)["metadata"]["name"])

    assert make("k") == make("k") != make("other")


@pytest.mark.parametrize("key", ["", "x" * 201, "ä", "a\r\nx-evil: 1"])
def test_a_key_that_cannot_be_sent_is_refused_here(key: str) -> None:
    with pytest.raises(BadInput, match="idempotency_key"):
        Played()(submit(a_site(), {**JOB}, key))


def test_a_wait_is_held_by_the_server_piece_by_piece() -> None:
    play = Played((30, record("executing")), (7, record("complete", completion_state="success")))

    assert play(wait(a_site(), QUEUED, None)).is_over
    assert [call.query["wait"] for call in play.asked] == ["30s", "30s"]
    assert play.paused == []


def test_a_wait_ends_at_its_time() -> None:
    play = Played((30, record("executing")), (10, record("executing")))

    with pytest.raises(StillRunning) as caught:
        play(wait(a_site(), QUEUED, 40))
    assert [call.query["wait"] for call in play.asked] == ["30s", "10s"]
    assert caught.value.record.state == "executing"
    assert isinstance(caught.value, TimeoutError)


def test_a_look_without_waiting_is_a_wait_of_no_time() -> None:
    play = Played(record("queued"))

    with pytest.raises(StillRunning):
        play(wait(a_site(), QUEUED, 0))
    assert [dict(call.query) for call in play.asked] == [{}]


def test_a_server_that_does_not_hold_its_answers_is_not_asked_all_the_time() -> None:
    play = Played(*[record("executing")] * 3, record("complete", completion_state="success"))

    play(wait(a_site(), QUEUED, None))
    assert play.paused == [1, 1, 1]


def test_a_stuck_operation_is_told_at_once() -> None:
    stuck = record("reverting", stuck_at="2026-01-05T12:00:00Z", stuck_message="dns: no")

    with pytest.raises(OperationStuck, match="stuck since 2026-01-05 12:00:00 UTC: dns: no"):
        Played(stuck)(wait(a_site(), QUEUED, None))


def test_a_server_that_restarts_is_waited_for() -> None:
    play = Played(LOST, AWAY, AWAY, record("complete", completion_state="success"))

    assert play(wait(a_site(), QUEUED, None)).succeeded


def test_a_result_is_of_the_type_that_is_asked_for() -> None:
    done = JobRecord(
        job_id="u", state="complete", completion_state="success", result=Outcome(output=["a", 1])
    )
    assert output_of(done, tuple[str, int]) == ("a", 1)
    with pytest.raises(ValueError, match="does not fit"):
        output_of(done, dict[str, int])


def test_a_failed_operation_tells_its_last_error() -> None:
    failed = JobRecord(
        job_id="u",
        name="a",
        state="complete",
        completion_state="failed",
        result=Outcome(error="dns: SERVFAIL"),
    )
    with pytest.raises(OperationFailed, match="job/a came to failed: dns: SERVFAIL") as caught:
        output_of(failed, None)
    assert caught.value.completion_state == "failed"


def test_events_are_put_together_however_they_are_cut() -> None:
    sent = b'id: 1\nevent: sync\ndata: {}\n\n: still here\n\nid: 2\nevent: added\ndata: {"a":1}\n\n'
    for cut in range(len(sent)):
        events = Events()
        found = [*events.feed(sent[:cut]), *events.feed(sent[cut:])]
        assert [(one["id"], one["event"]) for one in found] == [("1", "sync"), ("2", "added")]


def test_a_stream_that_breaks_off_goes_on_where_it_was() -> None:
    site = a_site()
    first = b'id: 4\nevent: added\ndata: {"id":"u","name":"a","namespace":"d","state":"Queued",'
    rest = (
        b'"version":"4","createdAt":null,'
        b'"tasks":{"total":0,"succeeded":0,"failed":0,"active":0,"retrying":0}}\n\n'
    )
    again = first + rest
    play = Played(said(200), first, rest, LOST, said(200), None, said(200), AWAY, said(200), again)

    play(stream(site, None, "", ""), most=2)

    assert [call.query["since"] for call in play.asked] == ["", "4", "4", "4"]
    assert [(one.version, one.job.name) for one in play.told] == [("4", "a"), ("4", "a")]


def accepted(number: int) -> dict[str, str]:
    return {"job_id": f"u{number}", "name": f"op-{number}", "namespace": "default"}


def items_of(call: Call) -> list[Any]:
    found: list[Any] = json.loads(call.body)["items"]
    return found


def record(state: str, **more: object) -> Reply:
    return said(200, {"job_id": "u", "name": "a", "state": state, **more})


def stored_job(name: str, notes: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": "u", "resourceVersion": "1"}
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {**metadata, "annotations": notes or {}},
        "spec": {"noop": {}},
    }
