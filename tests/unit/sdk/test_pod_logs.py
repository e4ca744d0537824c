"""A pod's log is followed until its container has ended, however often its stream does."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.client.cluster.pod_logs import LogRequest
from interlock.client.errors import UnreachableError
from interlock.sdk.pod_log import Place, call_of, follow
from support.played_plans import Played, a_site, said

POD = {"metadata": {"namespace": "default", "name": "shop-0-0", "uid": "u"}}
PATH = "/api/v1/namespaces/default/pods/shop-0-0"
REQUEST = LogRequest(
    POD, f"{PATH}/log", {"container": "main", "follow": "true", "sinceTime": None, "tailLines": 2}
)
CUT = UnreachableError("lost", sent=True)


def at(second: int, text: str, fraction: str = "5") -> str:
    return f"2026-01-01T00:00:{second:02}.{fraction}Z {text}\n"


def pod(state: str, **more: Any) -> Any:
    statuses = [
        {"name": "side", "state": {"terminated": {}}},
        {"name": "main", "state": {state: {}}},
    ]
    status = {"phase": "Running", "containerStatuses": statuses}
    return said(200, {**POD, "status": status, **more})


def parts(*lines: str) -> tuple[bytes, ...]:
    return tuple(line.encode() for line in lines)


def test_what_ends_early_is_followed_again_from_where_it_was() -> None:
    play = Played(
        *parts(at(1, "one"), at(2, "two"), at(2, "again")),
        None,
        pod("running"),
        said(200),
        *parts(at(2, "two"), at(2, "again"), at(2, "third"), at(3, "four")),
        None,
        pod("terminated"),
        said(200),
        *parts(at(3, "four"), at(3, "five")),
        None,
    )
    play(follow(a_site(), REQUEST, Place()))

    assert play.told == ["one", "two", "again", "third", "four", "five"]
    first, again, ended, last = play.asked
    assert (first.path, ended.path) == (PATH, PATH)
    assert again.query["sinceTime"] == "2026-01-01T00:00:02Z"
    assert last.query["sinceTime"] == "2026-01-01T00:00:03Z"
    assert (again.query["tailLines"], again.query["follow"]) == (None, "true")
    assert play.paused == [1.0]


def test_a_line_that_was_cut_is_told_once_and_whole() -> None:
    play = Played(
        *parts(at(1, "one"), at(2, "whole")[:-3]),
        CUT,
        pod("running"),
        said(200),
        *parts(at(1, "one"), at(2, "whole")),
        None,
        pod("terminated"),
        said(200),
        *parts(at(2, "whole"), at(3, "no newline")[:-1]),
        None,
    )
    play(follow(a_site(), REQUEST, Place()))

    assert play.told == ["one", "whole", "no newline"]


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(said(404, {"reason": "NotFound", "message": "no"}), id="it is gone"),
        pytest.param(pod("running", metadata={**POD["metadata"], "uid": "v"}), id="another one"),
        pytest.param(said(200, {**POD, "status": {"phase": "Failed"}}), id="it has failed"),
    ],
)
def test_the_log_of_a_pod_that_is_over_is_read_to_its_end(now: Any) -> None:
    gone = said(404, {"reason": "NotFound", "message": "no"})
    play = Played(*parts(at(1, "one")), None, now, gone)
    play(follow(a_site(), REQUEST, Place()))

    assert play.told == ["one"]
    assert play.paused == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("unable to retrieve container logs", None, id="the kubelet's own words"),
        pytest.param(at(5, "")[:-1], "", id="an empty line"),
        pytest.param("2026-01-01T00:00:05Z whole seconds", "whole seconds", id="no fraction"),
        pytest.param("2026-01-01T02:00:05.1+02:00 far", "far", id="another zone"),
    ],
)
def test_what_a_line_says(line: str, expected: str | None) -> None:
    assert Place().take(line) == (line if expected is None else expected)


def test_moments_are_told_apart_by_their_fraction() -> None:
    place = Place()
    told = [
        place.take(at(1, f"{n}", fraction)[:-1]) for n, fraction in enumerate(("05", "1", "12"))
    ]
    place.begin()
    again = [
        place.take(at(1, f"{n}", fraction)[:-1])
        for n, fraction in enumerate(("05", "1", "12", "2"))
    ]

    assert told == ["0", "1", "2"]
    assert again == [None, None, None, "3"]


def test_only_what_is_followed_is_asked_for_with_moments() -> None:
    read = REQUEST._replace(query={**REQUEST.query, "follow": None})

    assert call_of(REQUEST, Place()).query["timestamps"] == "true"
    assert "timestamps" not in call_of(read, Place()).query
