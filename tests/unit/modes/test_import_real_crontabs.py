"""Crontabs as distributions ship them and as people leave them: no job is lost, none is misread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_clocks import imported

from interlock.importing.crontab import import_crontab
from interlock.importing.crontab_titles import title_of
from interlock.importing.drafts import BadSourceError
from interlock.modes.cli.main import main

STOCK = Path(__file__).parent / "crontabs"
HEAD = "CRON_TZ=UTC\nHOME=/\n"

#: Each file, what its lines become, and the titles.
FILES = [
    ("debian-old", ["run-parts", "run-parts-2", "run-parts-3", "run-parts-4"], [""] * 4),
    ("debian", ["run-parts", "run-parts-2", "run-parts-3", "run-parts-4"], [""] * 4),
    ("ubuntu", ["run-parts", "run-parts-2", "run-parts-3", "run-parts-4"], [""] * 4),
    (
        "rhel-old",
        ["run-parts", "run-parts-2", "run-parts-3", "run-parts-4"],
        ["run-parts", "", "", ""],
    ),
    ("cron.d/0hourly", ["run-parts"], ["Run the hourly jobs"]),
    (
        "cron.d/raid-check",
        ["raid-check"],
        ["Run system wide raid-check once a week on Sunday at 1am by default"],
    ),
    ("cron.d/mdadm", ["checkarray"], ["hack (see #380425)."]),
    ("cron.d/php", ["sessionclean"], ["Look for and purge old sessions every 30 minutes"]),
    ("cron.d/e2scrub_all", ["e2scrub-all-cron", "e2scrub-all"], ["", ""]),
    ("cron.d/certbot", ["certbot"], [""]),
    (
        "cron.d/sysstat",
        ["debian-sa1", "debian-sa1-2"],
        [
            "Activity reports every 10 minutes everyday",
            "Additional run at 23:59 to rotate the statistics file",
        ],
    ),
]


def titles_of(objects: list[dict[str, Any]]) -> list[str]:
    return [made["spec"]["template"]["spec"].get("title", "") for made in objects]


def notes_of(source: str, **wishes: Any) -> list[tuple[int, str]]:
    _, draft = imported(import_crontab, source, **wishes)
    return [(note.line, f"{note.what}: {note.why}; {note.instead}") for note in draft.notes]


@pytest.mark.parametrize(("name", "names", "titles"), FILES)
def test_every_line_of_a_stock_file_is_imported(
    name: str, names: list[str], titles: list[str]
) -> None:
    objects, draft = imported(import_crontab, (STOCK / name).read_text(), has_users=True)
    assert draft.left_out == 0
    assert titles_of(objects) == titles
    users = [made["spec"]["template"]["spec"]["process"]["user"] for made in objects]
    assert set(users) == {"root"}
    assert [made["metadata"]["name"] for made in objects] == names


@pytest.mark.parametrize(
    ("comment", "title"),
    [
        ("# Copy it all", "Copy it all"),
        ("#Copy\tit  all", "Copy it all"),
        ("#-- Nightly\tcopy --#", "Nightly copy"),
        ("########## Backups ##########", "Backups"),
        ("# m h dom mon dow user\tcommand", ""),
        ("# m h  dom mon dow   command", ""),
        ("#minute\thour\tmday\tmonth\twday\twho\tcommand", ""),
        ("# min   hour    day     month   weekday command", ""),
        ("# Min Hour DoM Month DoW", ""),
        ("# mn hr  dom mon dow  cmd", ""),
        ("#minute (0-59), hour, day, month", ""),
        ("# .---------------- minute (0 - 59)", ""),
        ("# |  .------------- hour (0 - 23)", ""),
        ("# │ │ ┌──── day of the month", ""),
        ("# +---------------- minute (0 - 59)", ""),
        ("# *  *  *  *  * user-name command to be executed", ""),
        ("# 0 1 * * * old", ""),
        ("# @daily old", ""),
        ("# ----------", ""),
        ("# red \x1b[31m", "red [31m"),
        ("# a\u2028b\u200bc", "a bc"),
        ("# every hour, every day", "every hour, every day"),
    ],
)
def test_a_comment_is_a_title_only_when_it_is_one(comment: str, title: str) -> None:
    assert title_of(comment) == title
    objects, _ = imported(import_crontab, f"{HEAD}{comment}\n0 0 * * * work\n")
    assert titles_of(objects) == [title]


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n")))
def test_no_comment_ever_costs_a_job(comment: str) -> None:
    objects, draft = imported(import_crontab, f"{HEAD}#{comment}\n0 0 * * * work\n")
    assert len(objects) == 1
    assert draft.left_out == 0


def test_a_comment_in_another_encoding_costs_no_job(tmp_path: Path) -> None:
    file = tmp_path / "crontab"
    file.write_bytes(b"# R\xfcckgrat\n0 0 * * * work\n")
    assert main(["import", "crontab", str(file)]) == 0


@pytest.mark.parametrize("name", ["debian-old", "debian", "ubuntu", "rhel-old", "cron.d/mdadm"])
def test_a_system_crontab_is_refused_as_a_users_own(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some-file"
    file.write_bytes((STOCK / name).read_bytes())
    assert main(["import", "crontab", str(file)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert '"root" looks like a user' in told.err
    assert "--system" in told.err
    assert "--no-system" in told.err
    assert main(["import", "crontab", str(file), "--system"]) == 0
    assert "user: root" in capsys.readouterr().out
    assert main(["import", "crontab", str(file), "--no-system"]) == 0
    assert "name: root\n" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["etc/crontab", "etc/cron.d/work", "backup/etc/crontab"])
def test_where_a_file_stands_tells_that_it_has_users(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text("0 0 * * * backup /usr/bin/work\n")
    assert main(["import", "crontab", str(file)]) == 0
    told = capsys.readouterr()
    assert "user: backup" in told.out
    assert "has a column of users" in told.err
    assert "--no-system" in told.err
    assert main(["import", "crontab", str(file), "--no-system"]) == 0
    assert "backup /usr/bin/work" in capsys.readouterr().out


@pytest.mark.parametrize(
    "source",
    [
        "0 0 * * * www-data cd /srv && php cron.php\n",
        "0 0 * * * root /a\n0 1 * * * deploy /usr/bin/b\n0 2 * * * root [ -x /c ] && /c\n",
        "@daily nobody /usr/bin/updatedb\n",
        "@reboot root /usr/bin/warm\n",
    ],
)
def test_users_in_front_of_most_commands_are_noticed(source: str) -> None:
    with pytest.raises(BadSourceError, match="--system"):
        imported(import_crontab, source)


def test_people_of_this_machine_are_users_too() -> None:
    source = "0 0 * * * alice /usr/bin/a\n0 1 * * * alice cd /b && ./b\n"
    assert len(imported(import_crontab, source)[0]) == 2
    with pytest.raises(BadSourceError, match="alice"):
        imported(import_crontab, source, people=frozenset({"alice"}))


@pytest.mark.parametrize(
    "source",
    [
        "0 0 * * * cat /etc/passwd\n0 1 * * * backup /data\n0 2 * * * git pull\n",
        "0 0 * * * rooter /a\n",
        "0 0 * * * root\n",
        "0 0 * * * mysql -e 'select 1'\n",
        "0 0 * * * postgres --version\n",
        "0 0 * * * make test\n0 0 * * * node /srv/x.js\n",
    ],
)
def test_a_users_own_crontab_is_taken_as_such(source: str) -> None:
    objects, draft = imported(import_crontab, source)
    assert len(objects) == source.count("\n")
    assert not any("--system" in note.instead for note in draft.notes)


def test_a_single_line_with_a_user_is_told() -> None:
    source = f"{HEAD}0 0 * * * ./a\n0 1 * * * ./b\n0 2 * * * root ./c\n0 3 * * * ./d\n"
    assert [line for line, told in notes_of(source) if "--system" in told] == [5]


@pytest.mark.parametrize(
    "command",
    ["sudo -u x y", "env A=1 x", "php /srv/cron.php", "/usr/bin/x y", "cd /x && y", "A=1 x"],
)
def test_a_program_is_no_user(command: str) -> None:
    with pytest.raises(BadSourceError, match="leave --system out"):
        imported(import_crontab, f"0 0 * * * {command}\n", has_users=True)
    objects, draft = imported(
        import_crontab, f"0 0 * * * {command}\n0 0 * * * root x\n", has_users=True
    )
    assert (len(objects), draft.left_out) == (1, 1)


@pytest.mark.parametrize("line", ["0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"])
def test_a_line_that_is_never_due_is_run_by_hand(line: str) -> None:
    objects, draft = imported(import_crontab, f"{HEAD}{line} ./rarely.sh\n")
    assert objects[0]["metadata"]["name"] == "rarely"
    assert not {"schedules", "catchUp"} & set(objects[0]["spec"])
    assert draft.left_out == 0
    assert any("interlock run rarely" in note.instead for note in draft.notes)


def test_what_runs_when_the_machine_starts_is_not_lost() -> None:
    objects, draft = imported(import_crontab, f"{HEAD}@reboot ./warm-up\n")
    assert "schedules" not in objects[0]["spec"]
    assert objects[0]["spec"]["template"]["spec"]["process"]["command"][2] == "./warm-up"
    (note,) = [note for note in draft.notes if note.line == 3]
    assert "interlock run warm-up" in note.instead
    # It does not start by itself any longer: that is something left out.
    assert draft.left_out == 1


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("0 0 0 * * y", '"0" is no day of the month'),
        ("61 0 * * * y", "minute"),
        ("hello", "five fields"),
        ("@often y", "@hourly"),
        ("0 22-2 * * * y", "22-23,0-2"),
        ("0 0 * * 5-1 y", "5-6,0-1"),
        ("0 0 * * sat-sun y", "SAT,SUN"),
        ("0 0 L * * y", '"L" is no day of the month'),
        ("0 0 * * monday y", "SUN, MON"),
        ("0 0 * * 1#2 y", "is no day of the week"),
        ("H 0 * * * y", '"H" is no minute'),
        ("0 0 ? * * y", "is no day of the month"),
        ("0 0 * * * \0", "NUL"),
    ],
)
def test_a_bad_line_costs_no_other_line(bad: str, words: str, tmp_path: Path) -> None:
    source = f"{HEAD}0 0 * * * a\n{bad}\n0 0 * * * z\n"
    objects, draft = imported(import_crontab, source)
    assert [made["metadata"]["name"] for made in objects] == ["a", "z"]
    assert draft.left_out == 1
    (note,) = [note for note in draft.notes if note.what == "is not imported"]
    assert note.line == 4
    assert words in note.why
    file = tmp_path / "crontab"
    file.write_text(source)
    assert main(["import", "crontab", str(file)]) == 1


def test_a_zone_that_is_none_costs_only_the_lines_it_counts_for() -> None:
    source = "HOME=/\n0 0 * * * a\nCRON_TZ=Mars\n0 0 * * * b\nCRON_TZ=UTC\n0 0 * * * c\n"
    objects, draft = imported(import_crontab, source, timezone="UTC")
    assert [made["metadata"]["name"] for made in objects] == ["a", "c"]
    assert draft.left_out == 2
    told = {note.line: note.why for note in draft.notes if note.what == "is not imported"}
    assert "Mars" in told[3]
    assert "line 3" in told[4]


@pytest.mark.parametrize("line", ["0 0 * * * b", "@daily b", "@reboot b"])
def test_a_last_line_without_its_end_is_told(line: str) -> None:
    source = f"{HEAD}0 0 * * * a\n{line}"
    objects, _ = imported(import_crontab, source)
    assert [made["metadata"]["name"] for made in objects] == ["a", "b"]
    assert [number for number, told in notes_of(source) if "newline" in told] == [4]
    assert not any("newline" in told for _, told in notes_of(f"{source}\n"))
    assert not any("newline" in told for _, told in notes_of(f"{HEAD}0 0 * * * a\n# b"))


def test_who_got_mail_is_told_once() -> None:
    source = f"{HEAD}MAILTO=a@b.c\n0 0 * * * x\nMAILTO=''\n0 1 * * * y\nMAILTO=d\n0 2 * * * z\n"
    told = [(line, text) for line, text in notes_of(source) if "mail" in text]
    assert len(told) == 1
    line, text = told[0]
    assert line == 3
    assert '"a@b.c"' in text
    assert '"d"' in text


def test_flock_and_files_of_output_are_remarked_once() -> None:
    lines = [
        "0 0 * * * /usr/bin/flock -n /tmp/l a",
        "0 1 * * * flock /tmp/l b >> /var/log/b 2>&1",
        "0 2 * * * c &> c.log",
    ]
    told = notes_of(HEAD + "".join(f"{line}\n" for line in lines))
    assert [line for line, text in told if "locks" in text] == [3]
    assert [line for line, text in told if "interlock logs" in text] == [4]


@pytest.mark.parametrize(
    "command",
    [
        "a >/dev/null 2>&1", "a 2>/var/log/errors", "echo 'a > b'", 'echo "a >b"', "a >&2",
        "deflock x", "a | b", "a &> /dev/null", "cat < in",
    ],
)  # fmt: skip
def test_what_is_neither_is_not_remarked(command: str) -> None:
    told = notes_of(f"{HEAD}0 0 * * * {command}\n")
    assert not [text for _, text in told if "locks" in text or "interlock logs" in text]


def test_what_counts_for_the_whole_file_is_told_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "crontab"
    file.write_text("MAILTO=me\n0 0 * * * a\n0 1 * * * b\n")
    assert main(["import", "crontab", str(file)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "line 1" in lines[0]
    assert "names no zone, no HOME and no user" in lines[1]


def test_a_stock_file_that_runs_nothing_is_told_so() -> None:
    with pytest.raises(BadSourceError, match="nothing is run"):
        imported(import_crontab, (STOCK / "rhel").read_text(), has_users=True)


def test_a_users_own_file_with_a_drawing_of_the_fields_is_imported() -> None:
    objects, _ = imported(import_crontab, (STOCK / "user").read_text())
    assert titles_of(objects) == ["Nightly copy"]


def test_an_anacrontab_is_called_what_it_is() -> None:
    source = (
        "START_HOURS_RANGE=3-22\n"
        "1\t5\tcron.daily\t\tnice run-parts /etc/cron.daily\n"
        "7\t25\tcron.weekly\t\tnice run-parts /etc/cron.weekly\n"
        "@monthly 45\tcron.monthly\t\tnice run-parts /etc/cron.monthly\n"
    )
    with pytest.raises(BadSourceError, match="anacrontab"):
        imported(import_crontab, source)


def test_a_command_that_is_called_as_a_calendar_is_stands_in_nobodys_way() -> None:
    source = f"{HEAD}0 0 * * * ./weekdays-mon\n0 0 */2 * MON a\n0 1 */2 * MON b\n"
    objects, _ = imported(import_crontab, source)
    assert [made["kind"] for made in objects] == ["JobConfig", "Calendar", "JobConfig", "JobConfig"]
    assert objects[2]["spec"]["schedules"][0]["only"] == [objects[1]["metadata"]["name"]]


@pytest.mark.parametrize(
    "source",
    [
        "0 2 * * * /usr/local/bin/backup.sh\n0 * * * * cd /home/x && uv run report > m.log 2>&1\n",
        "0 */6 * * * push.sh >> $LOG/push.log 2>&1\n",
        "0 5 * * * ../cron_job.sh\n",
        "* * * * * env QUIET=1 $VV $HOME/worker\n@reboot $VV $HOME/restart\n",
        "0 1 * * * renew > /dev/null\n",
        "0 1 * * * renew --all\n",
    ],
)
def test_somebodys_own_crontab_that_is_kept_as_etc_crontab_is_read_as_such(source: str) -> None:
    objects, draft = imported(import_crontab, source, file="project/etc/crontab")
    assert len(objects) == source.count("\n")
    assert not any("user" in made["spec"]["template"]["spec"]["process"] for made in objects)
    (note,) = [note for note in draft.notes if "column" in note.what]
    assert "--system" in note.instead


def test_a_line_without_a_user_among_others_with_one_is_left_out() -> None:
    source = "* * * * * root a\n* * * * * operator /usr/libexec/b\n* * * * * /usr/bin/c d\n"
    objects, draft = imported(import_crontab, source, file="/etc/crontab")
    assert (len(objects), draft.left_out) == (2, 1)


def test_a_last_line_that_is_left_out_is_not_said_to_be_imported() -> None:
    source = f"{HEAD}0 0 * * * a\n0 30 * * * b"
    assert not any("newline" in told for _, told in notes_of(source))
