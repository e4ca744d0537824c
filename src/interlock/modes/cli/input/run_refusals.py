"""Refusals of `run`: what is wrong with a command, in terms of the flags that said so."""

from __future__ import annotations

import re

from interlock.client.errors import BAD_INPUT, AnswerError, CommandError

#: The beginnings of paths, and the flags that give what is there.
_FLAGS = (
    (re.compile(r"metadata\.name"), "--name"),
    (re.compile(r"metadata\.labels(.*)"), "--label"),
    (re.compile(r"spec\.locks.*"), "--lock"),
    (re.compile(r"spec\.retries\.limit"), "--retries"),
    (re.compile(r"spec\.retries\.delay"), "--retry-delay"),
    (re.compile(r"spec\.timeout"), "--timeout"),
    (re.compile(r"spec\.gracePeriod"), "--grace-period"),
    (re.compile(r"spec\.parallelism.*"), "--count"),
    (re.compile(r"spec\.priority"), "--priority"),
    (re.compile(r"spec\.queue"), "--queue"),
    (re.compile(r"spec\.resources(.*)"), "--resources"),
    (re.compile(r"spec\.slots\.testBed"), "--test-bed"),
    (re.compile(r"spec\.slots.*"), "--slot"),
    (re.compile(r"spec\.title"), "--title"),
    (re.compile(r"spec\.ttlAfterFinished"), "--ttl"),
    (re.compile(r"spec\.substitutions(.*)"), "--substitution"),
    (re.compile(r"spec\.process\.env(.*)"), "--env"),
    (re.compile(r"spec\.process\.workingDir"), "--working-dir"),
    (re.compile(r"spec\.process\.stdin"), "--stdin"),
    (re.compile(r"spec\.pod\.spec\.containers\[0\]\.image"), "--image"),
)
_WORD = re.compile(r"spec\.process\.command\[(\d+)\]")


def in_flags(error: AnswerError) -> CommandError:
    """The refusal of a Job that flags describe; other errors stay as they are."""
    if error.status != 422 or not error.causes:
        return error
    lines = [
        f"  {flag_of(str(cause.get('field') or ''))}: {cause.get('message') or ''}"
        for cause in error.causes
    ]
    if len(lines) == 1:
        return CommandError(f"interlock run: {lines[0].strip()}", code=BAD_INPUT)
    told = "interlock run: this cannot be run, nothing was stored"
    return CommandError("\n".join([told, *lines]), code=BAD_INPUT)


def flag_of(path: str) -> str:
    """What was typed, by the field that came of it; the field itself when no flag gives it."""
    if word := _WORD.fullmatch(path):
        return "the command" if word[1] == "0" else f"argument {word[1]} of the command"
    for pattern, flag in _FLAGS:
        if found := pattern.fullmatch(path):
            name = found[1].strip('.[]"') if pattern.groups else ""
            return f"{flag} {name}".rstrip()
    return path
