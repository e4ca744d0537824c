"""What is told about Jobs, by a real server: who did it, what is to blame, what to do next."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic

import pytest
from cli_program import Program

from interlock.testing.keepers import kill_keeper
from interlock.testing.serving import PATIENCE_S, Server

FAILS_AT = 7
#: One task fails once all others run; these would go on for ever.
WIDE = f"""\
mkdir -p here; touch here/$INTERLOCK_TASK_INDEX
if [ $INTERLOCK_TASK_INDEX = {FAILS_AT} ]; then
  until [ $(ls here | wc -l) = 30 ]; do sleep 0.05; done
  echo it is me; exit 3
fi
exec sleep 1000
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def interlock(server: Server, tmp_path: Path) -> Program:
    return Program(server.url, tmp_path)


def until(is_so: Callable[[], bool]) -> None:
    """Ask again and again until something is so."""
    deadline = monotonic() + PATIENCE_S
    while not is_so():
        assert monotonic() < deadline


def row(interlock: Program, name: str) -> dict[str, str]:
    """The line of one Job in a wide list, by its headers."""
    head, line = interlock("get", "job", name, "-o", "wide").splitlines()
    starts = [at for at, letter in enumerate(head) if letter != " " and head[:at][-3:].isspace()]
    starts = [0, *starts]
    ends = [*starts[1:], None]
    return {head[a:b].strip(): line[a:b].strip() for a, b in zip(starts, ends, strict=True)}


def test_of_a_wide_job_the_task_that_failed_is_named(interlock: Program) -> None:
    interlock("run", "--name", "wide", "--count", "30", "--", "sh", "-c", WIDE)
    told = interlock("wait", "wide", code=1).splitlines()[-1]

    cause = "task 7 failed with exit code 3; 29 others were told to stop"
    assert told.endswith(cause)
    summary, *lines = interlock("why", "wide").splitlines()
    assert summary.endswith(cause)
    assert [line.split(maxsplit=1) for line in lines if line] == [
        ["ended", "wide-7-0 Failed exit code 3"],
        ["log", "interlock logs wide --task 7"],
    ]
    assert row(interlock, "wide")["EXIT"] == "3"
    assert "it is me" not in interlock("logs", "wide")
    assert "this is task 0 of 30 (0 to 29)" in interlock.errors
    assert "interlock logs wide --task 7" in interlock.errors
    assert interlock("logs", "wide", "--task", "7") == "it is me\n"
    assert interlock.errors == ""


def test_people_count_attempts_from_one_everywhere(interlock: Program) -> None:
    script = "echo attempt $INTERLOCK_ATTEMPT; exit 4"
    told = interlock("run", "--name", "twice", "--retries", "1", "--wait", "--",
                     "sh", "-c", script, code=4)  # fmt: skip
    assert told.splitlines()[-1].endswith("task 0 (attempt 2) failed with exit code 4")
    ended = [line for line in interlock("why", "twice").splitlines() if "ended" in line]
    assert ended == [
        "  ended     twice-0-1 (attempt 2 of 2) Failed exit code 4",
        "  ended     twice-0-0 (attempt 1 of 2) Failed exit code 4",
    ]
    assert interlock("logs", "twice", "--attempt", "1") == "attempt 0\n"
    assert interlock("logs", "twice", "--attempt", "2") == "attempt 1\n"
    interlock("logs", "twice", "--attempt", "3", code=4)
    assert "task 0 of job/twice had 2 attempts so far" in interlock.errors
    interlock("logs", "twice", "--attempt", "0", code=2)
    assert "from 1 up" in interlock.errors


CONFIG = """\
kind: JobConfig
metadata: {name: solo}
spec:
  concurrency: {policy: Enqueue, maxQueued: 1}
  template: {spec: {process: {command: [sleep, "1000"]}}}
"""


def test_a_job_that_is_refused_at_once_is_not_told_as_created(interlock: Program) -> None:
    interlock("apply", "-f", "-", given=CONFIG)
    first = interlock("run", "solo", "-o", "name").strip()
    interlock("wait", first, "--for", "started")

    taken = "lock jobconfig/solo is taken, and the Job must not wait for it"
    assert interlock("run", "solo", "--policy", "Forbid", "--name", "no", code=75) == ""
    assert f"error: job/no was refused and never ran: {taken}" in interlock.errors
    assert "--policy Enqueue" in interlock.errors
    told = interlock.json("run", "solo", "--policy", "Forbid", code=75)
    assert told["status"]["phase"] == "Refused"
    assert taken in interlock.errors
    lines = interlock("run", "solo", "--policy", "Forbid", "--wait", code=75).splitlines()
    assert lines[-1].endswith(f"refused: {taken}")
    interlock("run", "solo", "--policy", "Forbid", "--follow", code=75)
    assert interlock.errors.splitlines()[-1].endswith(f"refused: {taken}")
    interlock("retry", "no", code=75)
    assert taken in interlock.errors

    assert interlock("run", "solo", "--name", "second") == "job/second created\n"
    interlock("run", "solo", "--name", "third", code=75)
    assert "1 Job waits for lock jobconfig/solo already" in interlock.errors
    assert interlock("run", "solo", "--policy", "Allow", "--name", "beside") == (
        "job/beside created\n"
    )
    assert interlock("run", "solo", "--policy", "Replace", "--name", "last") == (
        "job/last created\n"
    )
    interlock("wait", "last", "--for", "started")
    assert interlock("run", "--name", "later", "--lock", "free", "--when-taken", "forbid",
                     "--suspend", "--", "true") == "job/later created\n"  # fmt: skip
    interlock("kill", "last", "later", "--wait")


def test_a_name_that_is_taken_comes_with_the_next_step(interlock: Program) -> None:
    interlock("run", "--name", "once", "--wait", "--", "true")
    interlock("run", "--name", "once", "--", "true", code=5)
    assert "already exists" in interlock.errors
    for step in ("interlock retry once", "interlock delete job once", "--name"):
        assert step in interlock.errors
    interlock("run", "--name", "still", "--suspend", "--", "true")
    interlock("run", "--name", "still", "--", "true", code=5)
    assert "interlock wait still" in interlock.errors
    interlock("apply", "-f", "-", given=CONFIG)
    interlock("run", "solo", "--name", "once", code=5)
    assert "interlock retry once" in interlock.errors


def test_a_namespace_that_is_not_there_comes_with_the_way_to_make_it(interlock: Program) -> None:
    interlock("run", "-n", "nowhere", "--", "true", code=4)
    hint = next(line for line in interlock.errors.splitlines() if "kind: Namespace" in line)
    document = hint.split("'")[1]
    interlock("apply", "-f", "-", given=document)
    interlock("run", "-n", "nowhere", "--wait", "--", "true")


def test_several_are_named_or_selected(interlock: Program) -> None:
    def run(name: str, team: str, *command: str) -> None:
        interlock("run", "--name", name, "--label", f"team={team}", "--suspend", "--", *command)

    for name in ("many-a", "many-b"):
        run(name, "many", "true")
    run("other", "other", "true")
    assert interlock("resume", "many-a", "many-b") == "job/many-a resumed\njob/many-b resumed\n"
    interlock("wait", "-l", "team=many")
    told = interlock("retry", "many-a", "many-b").splitlines()
    assert [line.rpartition("-")[0] for line in told] == ["job/many-a-retry", "job/many-b-retry"]
    interlock("wait", "-l", "team=many")
    again = interlock("retry", "-l", "team=many", "--field-selector", "metadata.name=many-a",
                      "--wait")  # fmt: skip
    assert again.splitlines()[-1].startswith("many-a-retry-")
    assert len(interlock.json("retry", "many-a", "many-b")) == 2

    assert interlock("suspend", "-l", "team=other") == "job/other suspended\n"
    assert interlock("stop", "-l", "team=other", "--wait").splitlines()[0] == "job/other stopping"
    interlock("kill", "-l", "team=other", code=4)
    assert "no Job that is not over has the labels team=other" in interlock.errors
    interlock("wait", "-l", "team=nobody", code=4)
    interlock("stop", code=2)
    assert "give names, or -l LABELS" in interlock.errors
    interlock("stop", "x", "-l", "team=other", code=2)
    assert "either names or" in interlock.errors


def me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def test_who_stopped_a_job_is_told_everywhere(interlock: Program) -> None:
    interlock.env |= {"USER": "somebody-else", "LOGNAME": "somebody-else"}
    interlock("run", "--name", "stopped", "--", "sleep", "1000")
    interlock("wait", "stopped", "--for", "started")
    lines = interlock("stop", "stopped", "--wait").splitlines()

    told = f"stopped by {me()}"
    assert lines[-1].endswith(told)
    assert interlock("why", "stopped").splitlines()[0].endswith(told)
    history = interlock("history", "stopped")
    assert f"stop task 0: {told}" in history
    assert "somebody-else" not in history
    found = row(interlock, "stopped")
    assert (found["BY"], found["MESSAGE"]) == (me(), told)


def test_a_job_that_was_stopped_before_it_started_names_who_did_it(interlock: Program) -> None:
    interlock("run", "--name", "early", "--suspend", "--", "true")
    interlock("stop", "early", "--wait")

    assert interlock("why", "early") == f"early never started: stopped by {me()}\n"
    assert row(interlock, "early")["MESSAGE"] == f"stopped by {me()}"


def test_a_kill_at_of_the_definition_has_its_own_words(interlock: Program) -> None:
    definition = "kind: Job\nmetadata: {name: timed}\nspec:\n  killAt: 2026-01-05T12:00:00Z\n"
    interlock("apply", "-f", "-", given=f"{definition}  noop: {{}}\n")
    told = interlock("wait", "timed", code=137).splitlines()[-1]

    assert told.endswith("the time set for its end (killAt) has come")


def test_of_a_process_that_is_gone_the_child_that_lives_is_named(interlock: Program) -> None:
    script = "sleep 1000 & echo $! > child; echo $$ > main; exit 0"
    interlock("run", "--name", "parent", "--", "sh", "-c", script)
    until(lambda: "its main process ended" in interlock("why", "parent"))
    main, child = ((interlock.folder / name).read_text().strip() for name in ("main", "child"))

    told = next(one for one in interlock("why", "parent").splitlines() if "parent-0-0" in one)
    assert f"(pid {child})" in told
    assert main not in told.split()
    interlock("kill", "parent", "--wait")


def lose(interlock: Program, server: Server, **tasks: int) -> None:
    """Have Jobs become Unknown: their keeper is killed, and they end with nobody to see it."""
    for name, count in tasks.items():
        until(partial(_tells, interlock, name, "running for", count))
    kill_keeper(server.data)
    (interlock.folder / "enough").touch()
    for name in tasks:
        until(partial(_tells, interlock, name, "unknown state", 1))


def _tells(interlock: Program, name: str, words: str, count: int) -> bool:
    return interlock("why", name).count(words) == count


ENDS_UNSEEN = ("sh", "-c", "until [ -e enough ]; do sleep 0.05; done")


def test_an_unknown_job_without_a_lock_can_be_released(interlock: Program, server: Server) -> None:
    interlock("run", "--name", "free", "--", *ENDS_UNSEEN)
    one_ends = "until [ -e enough ] && [ $INTERLOCK_TASK_INDEX = 1 ]; do sleep 0.05; done"
    interlock("run", "--name", "broad", "--count", "3", "--", "sh", "-c", one_ends)
    interlock("run", "--name", "held", "--lock", "unknown-db", "--", *ENDS_UNSEEN)
    interlock("run", "--name", "next", "--lock", "unknown-db", "--", "true")
    lose(interlock, server, free=1, broad=3, held=1)

    way_out = "if it is surely gone: interlock release free --reason …"
    told = interlock("why", "free")
    assert told.splitlines()[0] == "free is in an unknown state"
    assert way_out in told
    assert interlock("stop", "free") == (
        f"job/free stopping; what became of it is not known: {way_out}\n"
    )
    interlock("delete", "job", "free", "--timeout", "0s", code=124)
    assert way_out in interlock.errors
    assert interlock("why", "held").startswith("held is in an unknown state and keeps its locks")

    interlock("release", "unknown-db", "--reason", "x", code=4)
    assert "interlock release unknown-db --job held --reason …" in interlock.errors
    interlock("release", "free", "next", "--reason", "looked", code=5)
    assert "job/next is Queued, not Unknown" in interlock.errors
    interlock("delete", "job", "free", "--ignore-not-found")
    assert interlock(
        "release", "--field-selector", "status.phase=Unknown", "--reason", "looked"
    ) == ("job/broad released\njob/held released\n")
    # Its other tasks are stopped then; of these too nobody can see the exit code any more.
    until(partial(_tells, interlock, "broad", "unknown for", 2))
    assert interlock("release", "broad", "--reason", "looked") == "job/broad released\n"
    interlock("wait", "broad", "held", code=1)
    assert f"released by {me()}: looked" in interlock("why", "broad")
    interlock("wait", "next")
    interlock("release", "--job", "held", "--reason", "x", code=5)
    assert "its fate needs nobody's word" in interlock.errors
    interlock("release", "--reason", "x", code=2)
    interlock("release", "held", "--reason", " ", code=2)
    assert "say why you are sure" in interlock.errors


def get_stuck(interlock: Program, name: str) -> None:
    """Have an operation get stuck: what it did can be undone once there is a file `undone`."""
    undo = f"undo: {{process: {{command: [test, -e, {interlock.folder}/undone]}}}}"
    steps = (
        f"{{name: a, run: {{process: {{command: ['true']}}}}, {undo}}}",
        "{name: b, run: {process: {command: ['false']}}}",
    )
    spec = f"{{target: {{path: {name}}}, steps: [{', '.join(steps)}]}}"
    interlock("apply", "-f", "-", given=f"kind: Job\nmetadata: {{name: {name}}}\nspec: {spec}\n")
    until(partial(_tells, interlock, name, "is stuck", 1))


def test_what_a_stuck_one_waits_for_before_it_ends_or_goes_is_told(interlock: Program) -> None:
    get_stuck(interlock, "jam")
    because = "it is stuck: undo of a is out of retries: failed with exit code 1"
    way_out = "interlock op roll-back | resolve | remove jam --reason …"

    assert way_out.replace(" | remove", "") in interlock("stop", "jam", "--no-wait")
    told = interlock("stop", "jam", "--wait", "--timeout", "0s", code=124)
    assert "stuck     nobody acts but a person; see: interlock op show jam" in told
    assert f"it is Stuck\n  see to it, then: {way_out}\n" in interlock.errors
    interlock("delete", "job", "jam", "--timeout", "0s", code=124)
    assert because in interlock.errors
    assert way_out in interlock.errors
    assert interlock("delete", "job", "jam", "--no-wait") == "job/jam deleted\n"
    assert interlock.errors == ""
    assert "it goes as soon as somebody has seen to what it is stuck at" in interlock("why", "jam")

    interlock("op", "remove", "jam", "--reason", "seen to it")
    interlock("delete", "job", "jam", "--ignore-not-found")


@contextmanager
def killed_at_the_end(process: subprocess.Popen[str]) -> Iterator[None]:
    """Wait for nothing when the test has failed."""
    try:
        yield
    finally:
        process.kill()


@pytest.mark.parametrize(
    "order", [("resolve", "--as", "failed"), ("remove",), ("roll-back",)], ids=lambda one: one[0]
)
def test_whoever_waits_for_a_deletion_is_told_and_stays(
    interlock: Program, order: tuple[str, ...]
) -> None:
    name = f"held-up-by-{order[0]}"
    get_stuck(interlock, name)
    deleting = subprocess.Popen(
        interlock.command("delete", "job", name),
        env=interlock.env, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    with deleting, killed_at_the_end(deleting):
        assert deleting.stderr is not None
        assert f"job/{name} is there yet: it is stuck" in deleting.stderr.readline()
        assert f"interlock op roll-back | resolve | remove {name}" in deleting.stderr.readline()
        (interlock.folder / "undone").touch()
        interlock("op", order[0], name, *order[1:], "--reason", "seen to it")
        assert deleting.wait(PATIENCE_S) == 0
    interlock("get", "job", name, code=4)


@pytest.mark.parametrize("variable", ["", "somebody-else"], ids=["unset", "another's"])
def test_the_proven_name_is_told_whatever_the_environment_says(
    interlock: Program, variable: str
) -> None:
    for name in ("USER", "LOGNAME"):
        interlock.env[name] = variable
    job = f"proven-{len(variable)}"
    interlock("run", "--name", job, "--suspend", "--", "true")
    interlock("suspend", job, "--reason", "audit")
    interlock("resume", job)
    interlock("wait", job)
    again = interlock("retry", job, "-o", "name").strip().removeprefix("job/")
    interlock("run", "--name", f"{job}-held", "--suspend", "--", "true")
    until(partial(_tells, interlock, f"{job}-held", f"it is suspended by {me()}", 1))
    interlock("delete", "job", job)

    assert row(interlock, again)["BY"] == me()
    assert f" by {me()}\n" in interlock("describe", "job", again)
    history = interlock("history", job)
    for deed in ("suspended", "resumed", "deleted"):
        assert f"{deed} by {me()}" in history
    assert "somebody-else" not in history
