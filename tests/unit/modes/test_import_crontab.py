"""A crontab becomes JobConfigs that do what cron did with it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_clocks import (
    CHANGES,
    by_vixie_cron,
    by_vixie_cron_on_the_hour,
    due_times,
    imported,
)

from interlock.importing.crontab import import_crontab
from interlock.importing.drafts import BadSourceError, Draft, Wishes
from interlock.importing.naming import name_of_command
from interlock.importing.variables import escaped
from interlock.resources.door.validation import read_resource
from interlock.resources.variables import substitute

HEAD = "CRON_TZ=UTC\nHOME=/\n"


def one(line: str, **wishes: Any) -> dict[str, Any]:
    objects, _ = imported(import_crontab, f"{HEAD}{line}\n", **wishes)
    return objects[-1]


def process_of(line: str, **wishes: Any) -> dict[str, Any]:
    found: dict[str, Any] = one(line, **wishes)["spec"]["template"]["spec"]["process"]
    return found


def schedule_of(line: str) -> dict[str, Any]:
    found: dict[str, Any] = one(line)["spec"]["schedules"][0]
    return found


def told(source: str, **wishes: Any) -> list[tuple[int, str]]:
    _, draft = imported(import_crontab, source, **wishes)
    return [(note.line, note.what) for note in draft.notes]


@pytest.mark.parametrize(
    "line",
    [
        "30 2 * * *",
        "30 1 * * *",
        "0 0 * * *",
        "*/20 2 * * *",
        "*/20 1 * * *",
        "0 */2 * * *",
        "15 * * * *",
        "5-59/10 1 * * *",
        "0-59/20 2 * * *",
        "0,30 1-3 * * *",
        "10 1-5/2 * * *",
        "0 0 */2 * MON",
        "0 9 */100,1-7 * MON",
        "30 2 13 * 5",
        "30 2 */2 * *",
        "30 23 * * SAT",
        "45 * * * 0",
    ],
)
@pytest.mark.parametrize(("zone", "start", "end"), CHANGES)
def test_a_line_is_due_when_cron_runs_it_through_clock_changes(
    line: str, zone: str, start: datetime, end: datetime
) -> None:
    objects, _ = imported(import_crontab, f"CRON_TZ={zone}\nHOME=/\n{line} work\n")
    *calendars, made = objects
    expected = by_vixie_cron(line, zone, start, end)
    assert due_times(made, start, end, calendars) == expected


def test_a_line_is_due_on_the_same_days_of_a_whole_year() -> None:
    for line in ("0 9 */100,1-7 * MON", "0 0 */2 * MON", "0 12 1,15 * WED", "0 6 13 * */2"):
        *calendars, made = imported(import_crontab, f"{HEAD}{line} work\n")[0]
        start, end = CHANGES[0][1], CHANGES[0][1].replace(year=2027)
        assert due_times(made, start, end, calendars) == by_vixie_cron_on_the_hour(line, start, end)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("@hourly x", {"cron": "0 * * * *", "onGap": "Skip", "onRepeat": "Both"},
                     id="@hourly goes by what the clock shows"),
        pytest.param("@daily x", {"cron": "0 0 * * *"}, id="@daily is a fixed time"),
        pytest.param("@weekly x", {"cron": "0 0 * * 0"}, id="@weekly"),
        pytest.param("@annually x", {"cron": "0 0 1 1 *"}, id="@annually"),
        pytest.param("0-59/20 1 * * * x", {"cron": "0,20,40 1 * * *"},
                     id="a step without a * is a list of fixed times"),
        pytest.param("*/90 0 * * * x", {"cron": "0 0 * * *", "onGap": "Skip", "onRepeat": "Both"},
                     id="a step beyond the end"),
        pytest.param("0 0 5,* * mon x", {"cron": "0 0 1-31 * MON"},
                     id="a * that does not come first is none"),
        pytest.param("7 4 * jan-mar fri-7 x", {"cron": "7 4 * JAN-MAR FRI-7"}, id="names"),
        pytest.param("~ 0~5 * * * x", {"cron": "H H(0-5) * * *"}, id="drawn by lot"),
        pytest.param("-0 4 * * * x", {"cron": "0 4 * * *"}, id="a line that is not logged"),
    ],
)  # fmt: skip
def test_the_times_of_a_line_are_kept(line: str, expected: dict[str, Any]) -> None:
    assert schedule_of(line) == {"timezone": "UTC", **expected}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("0 0 * * * echo hi", {}, id="plain"),
        pytest.param("0 0 * * * date +\\%F", {"command": "date +%F"}, id="an escaped percent"),
        pytest.param("0 0 * * * cat%one%two", {"command": "cat", "stdin": "one\ntwo\n"},
                     id="percents are lines of input"),
        pytest.param("0 0 * * * cat%", {"command": "cat", "stdin": "\n"}, id="an empty input"),
        pytest.param("0 0 * * * cat%5\\%%", {"command": "cat", "stdin": "5%\n"},
                     id="an escaped percent in the input"),
        pytest.param("0 0 * * * echo ${job.name} ${HOME}",
                     {"command": "echo $${job.name} ${HOME}"}, id="what we would take for ours"),
        pytest.param("0 0 * * * echo $${x}", {"command": "echo $$${x}"}, id="a plain $${"),
        pytest.param("0 0 * * *\techo  'a  b' # c", {"command": "echo  'a  b' # c"},
                     id="the line is taken to the letter"),
    ],
)  # fmt: skip
def test_the_command_is_the_users_own_text(line: str, expected: dict[str, str]) -> None:
    process = process_of(line)
    shell, flag, command = process["command"]
    assert (shell, flag) == ("/bin/sh", "-c")
    assert command == expected.get("command", "echo hi")
    assert process.get("stdin") == expected.get("stdin")


@given(st.text(alphabet="$\\{}ajob.nmetsk ", max_size=30))
def test_whatever_a_text_holds_exactly_it_is_left_once_variables_have_values(text: str) -> None:
    assert substitute(escaped(text), {}) == text


def test_settings_count_for_the_lines_below_them() -> None:
    source = f"{HEAD}0 0 * * * a\nPATH=/opt/bin\nSHELL = '/bin/bash'\nLANG=\"C \"\n0 0 * * * b\n"
    first, second = imported(import_crontab, source)[0]
    assert first["spec"]["template"]["spec"]["process"]["env"] == {
        "SHELL": "/bin/sh",
        "PATH": "/usr/bin:/bin",
        "HOME": "/",
    }
    process = second["spec"]["template"]["spec"]["process"]
    assert process["command"][0] == "/bin/bash"
    assert process["env"]["PATH"] == "/opt/bin"
    assert process["env"]["LANG"] == "C "
    assert process["workingDir"] == "/"


def test_the_zone_of_a_line_is_the_nearest_above_it() -> None:
    source = "HOME=/\n0 0 * * * a\nCRON_TZ=Asia/Tokyo\n0 0 * * * b\n"
    objects, draft = imported(import_crontab, source, timezone="Europe/Paris")
    zones = [made["spec"]["schedules"][0]["timezone"] for made in objects]
    assert zones == ["Europe/Paris", "Asia/Tokyo"]
    assert not any("zone" in note.what for note in draft.notes)


def test_the_column_of_users_is_kept() -> None:
    objects, draft = imported(
        import_crontab, f"{HEAD}17 * * * *\troot    cd / && run-parts hourly\n", has_users=True
    )
    process = objects[0]["spec"]["template"]["spec"]["process"]
    assert (process["user"], process["command"][2]) == ("root", "cd / && run-parts hourly")
    assert [note.what for note in draft.notes] == ["names users"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(f"{HEAD}@reboot warm\n0 0 * * * x\n", (3, "does not start by itself"),
                     id="@reboot"),
        pytest.param(f"{HEAD}MAILTO=me\n0 0 * * * x\n", (3, '"me" gets no mail'), id="mail"),
        pytest.param(f"{HEAD}TZ=Asia/Tokyo\n0 0 * * * x\n", (3, "is not the zone of the lines"),
                     id="TZ"),
        pytest.param("HOME=/\n0 0 * * * x\n", (0, "names no zone and no user"), id="no zone"),
        pytest.param("CRON_TZ=UTC\n0 0 * * * x\n", (0, "names no HOME and no user"), id="no home"),
        pytest.param(f"{HEAD}5/15 * * * * x\n", (3, '"5/15" is read as 5'), id="a bare step"),
        pytest.param(f"{HEAD}0 0 30 2 * x\n", (3, "is never due"), id="a day that never comes"),
        pytest.param("CRON_TZ=America/New_York\nHOME=/\n0,30 2 * * * x\n",
                     (3, "several of its times are skipped on 2026-03-08"), id="two in one gap"),
        pytest.param(f"{HEAD}RANDOM_DELAY=5\n0 0 * * * x\n", (3, "is not carried over"),
                     id="a random delay"),
    ],
)  # fmt: skip
def test_what_does_not_carry_over_is_told(source: str, expected: tuple[int, str]) -> None:
    assert expected in told(source)


def test_what_carries_over_wholly_is_not_told() -> None:
    assert told(f'{HEAD}MAILTO=""\n0 0 * * * x\n') == [(0, "names no user")]


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        pytest.param("0 0 * * x\n", 1, "five fields and a command", id="a field short"),
        pytest.param("# fine\n61 0 * * * x\n", 2, "minute", id="no such minute"),
        pytest.param("0 25 * * * y\n", 1, "hour", id="no such hour"),
        pytest.param("*/0 * * * * x\n", 1, "is no minute", id="a step of nothing"),
        pytest.param("@often x\n", 1, "@hourly", id="no such nickname"),
        pytest.param("@daily\n", 1, "a command", id="no command"),
        pytest.param("CRON_TZ=Mars/Olympus\n0 0 * * * x\n", 1, "zone", id="no such zone"),
        pytest.param("hello\n", 1, "five fields", id="no crontab at all"),
        pytest.param("# nothing\n", 2, "nothing is run", id="an empty one"),
    ],
)
def test_a_bad_line_refuses_the_file_with_its_number(source: str, line: int, words: str) -> None:
    with pytest.raises(BadSourceError) as caught:
        imported(import_crontab, source)
    assert caught.value.flaws[0].line == line
    assert words in caught.value.flaws[0].message


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/backup.sh --full >/dev/null 2>&1", "backup"),
        ("cd /srv && ./manage.py clearsessions", "manage"),
        ("test -x /usr/sbin/anacron || ( cd / && run-parts /etc/cron.daily )", "run-parts"),
        ("A=1 nice -n 10 /usr/bin/python3 /opt/jobs/sync.py", "sync"),
        ("/usr/bin/flock -n /tmp/lock ./import-feed.sh", "import-feed"),
        ("/usr/bin/env bash -c 'rsync -a /a /b'", "rsync"),
        ("[ -x /usr/lib/php/sessionclean ] && /usr/lib/php/sessionclean", "sessionclean"),
        ("echo 'unclosed", "echo"),
        ("sudo -u www-data php /srv/cron.php", "cron"),
        ("$(bad", "bad"),
    ],
)  # fmt: skip
def test_names_tell_what_a_line_is_about(command: str, name: str) -> None:
    from interlock.importing.naming import fitting_name

    assert fitting_name(name_of_command(command), 41) == name


def test_names_are_good_the_only_ones_and_always_the_same() -> None:
    lines = "".join(f"{minute} 0 * * * ./work.sh\n" for minute in range(3))
    long = f"0 0 * * * ./{'very-' * 20}long.sh\n"
    source = HEAD + lines + long
    names = [made["metadata"]["name"] for made in imported(import_crontab, source)[0]]
    assert names[:3] == ["work", "work-2", "work-3"]
    assert len(names[3]) <= 52
    assert names == [made["metadata"]["name"] for made in imported(import_crontab, source)[0]]
    prefixed = [made["metadata"]["name"] for made in imported(import_crontab, source, prefix="web")[0]]  # fmt: skip  # noqa: E501
    assert prefixed[:3] == ["web-work", "web-work-2", "web-work-3"]


def test_the_comment_above_a_line_is_its_title() -> None:
    source = (
        f"{HEAD}# Copy it all\n0 0 * * * a\n# 0 1 * * * old\n0 0 * * * b\n# far\n\n0 0 * * * c\n"
    )
    titles = [
        made["spec"]["template"]["spec"].get("title")
        for made in imported(import_crontab, source)[0]
    ]
    assert titles == ["Copy it all", None, None]


@given(st.text(alphabet=st.sampled_from("0159*/-,~@%\\=#'\" \t\nHRabcLW?CRON_TZ$"), max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    draft = Draft(Wishes(file="crontab"))
    with suppress(BadSourceError):
        import_crontab(draft, text.encode())
    for made in draft.objects:
        read_resource(made)


@pytest.mark.parametrize("part", ["#", "# ", "#\t", "# 0 ", "a", "=", "* * * * * a;"])
def test_a_long_line_takes_no_longer_than_reading_it(part: str) -> None:
    """What tries every beginning again at every character would not come to its end here."""
    with suppress(BadSourceError):
        imported(import_crontab, f"{HEAD}{part * 200_000}\n0 1 * * * work\n")
