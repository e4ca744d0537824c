"""Whether a crontab has a column of users: by where the file stands, and by what is in it.

A command that is read as a user, or a user as a command, is a job that never runs right. So what is
likely to be misread is refused or told, and never guessed in silence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import NamedTuple

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?(?:[:/][A-Za-z0-9_.:/-]*)?")
#: Accounts that machines have and programs are not called.
_ACCOUNTS = frozenset(
    {
        *("root", "www-data", "nobody", "daemon", "apache", "wwwrun", "_apt", "ec2-user", "ubuntu"),
        *("centos", "debian", "vagrant", "pi", "jenkins", "tomcat", "nagios", "zabbix", "gitlab"),
        *("prometheus", "munin", "amavis", "debian-spamd", "smmsp", "operator"),
    }
)
#: Accounts that are called as programs are.
_BOTH = frozenset({"nginx", "postgres", "mysql", "redis", "git"})
#: Programs and words of a shell that no account is called.
_PROGRAMS = re.compile(
    r"sudo|su|doas|env|exec|command|nice|ionice|nohup|timeout|time|setsid|chronic|flock|xargs"
    r"|(?:ba|da|k|z|tc|c|fi)?sh|python[0-9.]*|perl|php[0-9.]*|ruby|node|java|npm|npx|yarn|bundle"
    r"|cd|test|echo|printf|export|source|set|eval|if|for|while|true|false|sleep|date|touch"
    r"|cp|mv|rm|ln|ls|cat|mkdir|chmod|chown|find|grep|sed|awk|tar|gzip|zip|make|tee|mount"
    r"|curl|wget|rsync|ssh|scp|rclone|aws|gsutil|docker|docker-compose|podman|kubectl|helm"
    r"|run-parts|logrotate|certbot|systemctl|service|mysqldump|mysqladmin|pg_dump|psql|vacuumdb"
    r"|apt|apt-get|yum|dnf|composer|drush|wp|updatedb|mandb|shutdown|reboot|logger|nmap|ntpdate"
)


_SCRIPT = re.compile(r".*\.(?:sh|bash|py|pl|php|rb|js|cgi|jar|exe)")


class Begins(NamedTuple):
    """How the text behind the times begins."""

    #: Its first word.
    word: str
    #: Whether that is a user beyond reasonable doubt, whether it looks like one by what follows,
    #: and whether it can be one at all.
    is_user: bool
    may_be_user: bool
    can_be_user: bool


def stands_for_system(file: str) -> bool:
    """Whether a file stands where cron expects a column of users."""
    parts = PurePath(file).parts
    return parts[-2:] == ("etc", "crontab") or parts[-2:-1] == ("cron.d",)


def is_program(word: str, people: Collection[str]) -> bool:
    """Whether a word where a user is expected is none."""
    if word in people:
        return False
    if not _USER.fullmatch(word):
        return True
    return bool(_PROGRAMS.fullmatch(word) or _SCRIPT.fullmatch(word))


def begins(text: str, people: Collection[str]) -> Begins:
    """Look at what stands behind the times of a line."""
    word, *rest = text.split(None, 1)
    after = rest[0].split(None, 1)[0] if rest else ""
    if not after or after[0] in "-<>|&;" or is_program(word, people):
        return Begins(word, is_user=False, may_be_user=False, can_be_user=False)
    runs_something = after[0] in "/[({." or bool(_PROGRAMS.fullmatch(after))
    is_user = word in _ACCOUNTS or (runs_something and word in {*people, *_BOTH})
    return Begins(word, is_user, is_user or runs_something, can_be_user=True)


def can_be_system(found: Sequence[Begins]) -> bool:
    """Whether most lines of a file may name a user, as they begin."""
    return 2 * sum(each.can_be_user for each in found) > len(found)


def is_system(found: Sequence[Begins]) -> bool:
    """Whether the lines of a file are those of a system crontab, as they begin."""
    columned = sum(each.may_be_user for each in found)
    return any(each.is_user for each in found) and 2 * columned > len(found)
