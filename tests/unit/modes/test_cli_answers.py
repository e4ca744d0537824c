"""Answers are read however they are cut, and told as they are meant."""

from __future__ import annotations

import io
import socket
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.client.http_client import Body, quote, read_answer
from interlock.client.moments import between, day_and_time
from interlock.client.outcomes import exit_code, last_line, waits_told
from interlock.client.watching import Lines
from interlock.modes.cli.output.formats import Terminal
from interlock.modes.cli.output.jsonpath import render
from interlock.modes.cli.verbs.why import told
from interlock.resources.values.durations import told_length


@settings(deadline=None)
@given(
    parts=st.lists(st.binary(min_size=1, max_size=9), max_size=5),
    cut=st.integers(1, 7),
    end=st.sampled_from([b"0\r\n\r\n", b"0\r\nSum: 7\r\nMore: x\r\n\r\n"]),
)
def test_a_chunked_body_is_put_together(parts: list[bytes], cut: int, end: bytes) -> None:
    sent = b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in parts) + end
    body = Body({"transfer-encoding": "chunked"}, empty=False)
    pieces = [sent[i : i + cut] for i in range(0, len(sent), cut)]
    read = b"".join(map(body.feed, pieces[:-1]))

    # A connection that is used again before the last line has come would answer with it.
    assert not body.done
    assert read + body.feed(pieces[-1]) == b"".join(parts)
    assert body.done


@pytest.mark.parametrize("line", [b"zz\r\n", b"-4\r\n", b"f" * 5000])
def test_nonsense_in_the_place_of_a_chunk_is_an_end(line: bytes) -> None:
    body = Body({"transfer-encoding": "chunked"}, empty=False)
    with pytest.raises(ConnectionError):
        body.feed(line)


def test_a_head_without_an_end_is_given_up() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(10)
        theirs.sendall(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000)
        with pytest.raises(ConnectionError):
            read_answer(ours)


@settings(deadline=None)
@given(content=st.binary(max_size=30), cut=st.integers(1, 7))
def test_a_body_of_known_length_ends_there(content: bytes, cut: int) -> None:
    body = Body({"content-length": str(len(content))}, empty=False)
    sent = content + b"next"
    read = b"".join(body.feed(sent[i : i + cut]) for i in range(0, len(sent), cut))

    assert read == content
    assert body.done


@settings(deadline=None)
@given(text=st.binary(max_size=40), cut=st.integers(1, 9))
def test_lines_are_put_together(text: bytes, cut: int) -> None:
    lines = Lines()
    found = [line for i in range(0, len(text), cut) for line in lines.feed(text[i : i + cut])]
    assert found == [line for line in text.split(b"\n")[:-1] if line.strip()]


def test_quote() -> None:
    assert quote("a/b c=ü~") == "a%2Fb%20c%3D%C3%BC~"


def a_job(phase: str, *, total: int = 1, **attempt: Any) -> dict[str, Any]:
    ended = [{"index": 0, "attempt": 0, "name": "x-0-0", **attempt}] if attempt else []
    execution = {
        "total": total,
        "startedAt": "2026-01-05T12:00:00Z",
        "endedAt": "2026-01-05T12:00:12.4Z",
        "ended": ended,
        "succeeded": "0-1,3" if total > 1 else "",
    }
    return {"metadata": {"name": "x"}, "status": {"phase": phase, "execution": execution}}


@pytest.mark.parametrize(
    ("job", "code", "line"),
    [
        (a_job("Succeeded", exitCode=0), 0, "succeeded in 12.4 s, exit code 0"),
        (a_job("Failed", exitCode=3), 3, "failed after 12.4 s, exit code 3"),
        (a_job("Failed", exitCode=0), 1, "failed after 12.4 s"),
        (a_job("Failed", signal=9), 137, "failed after 12.4 s, ended by signal 9"),
        (a_job("Failed", total=5, exitCode=3), 1, "failed after 12.4 s, 3 of 5 tasks succeeded"),
        (a_job("Killed", signal=15), 137, "killed after 12.4 s"),
        ({"status": {"phase": "Killed"}}, 137, "killed before it started"),
        ({"status": {"phase": "Refused", "admission": {"message": "no"}}}, 75, "refused: no"),
        (a_job("FinishedUnknown"), 1, "finished unknown"),
    ],
)
def test_outcomes(job: dict[str, Any], code: int, line: str) -> None:
    assert exit_code(job) == code
    assert last_line(job) == line


def test_waits() -> None:
    waits = [{"reason": "Suspended"}, {"reason": "LockTaken", "key": "db"}]
    job = {"spec": {"suspendReason": "rest"}, "status": {"admission": {"waits": waits}}}
    assert waits_told(job) == "suspended: rest; lock db is taken"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.04, "0.0 s"), (12.44, "12.4 s"), (59, "59 s"), (60, "1 m"), (192, "3 m 12 s"),
     (7500, "2 h 5 m"), (86400, "1 d"), (97200 * 10, "11 d 6 h")],
)  # fmt: skip
def test_lengths(seconds: float, expected: str) -> None:
    assert told_length(seconds) == expected
    assert between("2026-01-05T12:00:00Z", None) == ""


ITEMS = {"items": [{"a": {"b.c": 1}, "n": "x"}, {"n": "y", "l": [1, 2]}]}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{.items[*].n}", "x y"),
        (".items[0].n", "x"),
        ("{.items[-1].l}", "[1, 2]"),
        ("{.items[0].a['b.c']}", "1"),
        ("{.items[0].a.b\\.c}", "1"),
        ("{.nothing}", ""),
        ('{range .items[*]}{.n}{"\\n"}{end}', "x\ny\n"),
        ("n={.items[1].n}!", "n=y!"),
    ],
)
def test_jsonpath(template: str, expected: str) -> None:
    assert render(template, ITEMS) == expected


@pytest.mark.parametrize("template", ["", "{[}", "{range .items[*]}{.n}", '{"x}'])
def test_bad_jsonpath(template: str) -> None:
    with pytest.raises(CommandError) as caught:
        render(template, ITEMS)
    assert caught.value.code == BAD_INPUT


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_only_where_it_is_seen_and_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Terminal(Screen()).mood("Failed") == "\x1b[31mFailed\x1b[0m"
    assert Terminal(io.StringIO()).mood("Failed") == "Failed"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Terminal(Screen()).mood("Failed") == "Failed"


def test_a_table_is_as_wide_as_it_needs_and_safe_to_print() -> None:
    out = io.StringIO()
    Terminal(out).table(["NAME", "TITLE"], [["a", "x\x1b[2Jy"], ["longer", "z\nw"]])
    assert out.getvalue() == "NAME     TITLE\na        x?[2Jy\nlonger   z w\n"


def test_why_answers_first_and_explains_then() -> None:
    holder = {"job": "a", "phase": "Running", "since": "2026-01-05T12:00:00Z"}
    answer = {
        "summary": "x is waiting",
        "waits": [{"message": "lock db is held", "holders": [holder, holder]}],
        "details": [["task", "x-0-0 running"]],
        "locks": {"k": 4},
    }
    assert told(answer, datetime(2026, 1, 5, 12, 4, tzinfo=UTC)) == [
        "x is waiting",
        "",
        "  blocked   lock db is held",
        "  held by   job/a (Running, 4 m)",
        "  held by   job/a (Running, 4 m)",
        "",
        "  task      x-0-0 running",
        "  holds     lock k (token 4)",
    ]


OR_EARLIER = "or earlier when something changes"


@pytest.mark.parametrize(
    ("until", "lines"),
    [
        pytest.param(None, ["  estimate  about noon"], id="alone"),
        pytest.param(
            "2026-01-05T14:00:00Z",
            [
                f"  until     {day_and_time('2026-01-05T14:00:00Z')}, {OR_EARLIER}",
                "  estimate  about noon",
            ],
            id="it is another moment",
        ),
        pytest.param(
            "2026-01-05T12:00:00Z",
            [f"  until     {day_and_time('2026-01-05T12:00:00Z')}, {OR_EARLIER}"],
            id="the line above says it",
        ),
    ],
)
def test_an_estimate_stands_below_what_is_waited_for(until: str | None, lines: list[str]) -> None:
    answer = {
        "summary": "x is waiting",
        "waits": [{"message": "queue q has no room", "until": until}],
        "estimate": {"at": "2026-01-05T12:00:00Z", "basis": "Pace", "message": "about noon"},
    }

    found = told(answer, datetime(2026, 1, 5, 11, 0, tzinfo=UTC))

    assert found == ["x is waiting", "", "  blocked   queue q has no room", *lines]
