"""Command errors and exit codes: what ends a command early."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Done.
OK = 0
#: Something is different (`diff`), or what was waited for did not succeed.
FAILED = 1
#: What was typed, or what a file says, makes no sense.
BAD_INPUT = 2
#: No server, or a server that cannot serve now.
UNREACHABLE = 3
#: There is no such thing.
NOT_FOUND = 4
#: It is not in the state that the order needs, or changed meanwhile.
CONFLICT = 5
#: The server knows who asks, or does not, and says no.
FORBIDDEN = 6
#: A defect of this program.
DEFECT = 70
#: The Job was refused and never ran: a lock was taken, or its time was over.
NEVER_RAN = 75
#: The time to wait is over.
TIMED_OUT = 124
#: Ctrl-C.
INTERRUPTED = 130
#: The Job was killed or stopped.
KILLED = 137

#: What the documentation says of each code.
MEANINGS = {
    OK: "done",
    FAILED: "`diff`, `plan`: there are differences; `simulate`: an expectation is not met; "
    "`wait`, `--wait`: the Job did not succeed; "
    "`move`: a Job is left in conflict; `import`: something was left out",
    BAD_INPUT: "bad input: what was typed, or what a file says; nothing of it was stored",
    UNREACHABLE: "no server answers, or it cannot serve now",
    NOT_FOUND: "there is no such thing",
    CONFLICT: "it is not in the state that this needs, or somebody else changed it meanwhile",
    FORBIDDEN: "the server does not allow it: no token, the wrong one, or another user's server",
    DEFECT: "a defect of this program; `INTERLOCK_TRACEBACK=1` shows where it is",
    NEVER_RAN: "the Job was refused and never ran; `run`, `retry`: when that is so at once",
    TIMED_OUT: "the time to wait is over",
    INTERRUPTED: "interrupted with Ctrl-C",
    KILLED: "`wait`, `--wait`: the Job was killed or stopped",
}


class CommandError(Exception):
    """A command cannot be carried out: what is wrong, what to do about it, and the exit code."""

    def __init__(self, message: str, *, hint: str = "", code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


class UnreachableError(CommandError):
    """No server answers."""

    def __init__(self, message: str, *, hint: str = "", sent: bool = False) -> None:
        super().__init__(message, hint=hint, code=UNREACHABLE)
        #: Whether the server may have been asked, and so may have done something.
        self.sent = sent


class AnswerError(CommandError):
    """The server answered, and said no."""

    def __init__(self, status: int, body: dict[str, object], message: str, code: int) -> None:
        super().__init__(message, code=code)
        self.status = status
        #: Kubernetes' word for what is wrong: NotFound, AlreadyExists, Conflict, Invalid, ...
        self.reason = str(body.get("reason") or "")
        details = body.get("details")
        causes = details.get("causes") if isinstance(details, dict) else None
        #: For Invalid: each field that is wrong, and why.
        self.causes: list[dict[str, str]] = causes if isinstance(causes, list) else []


#: Nobody mistypes words longer than this; they are not compared.
_LONGEST_WORD = 100


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion when something near was probably meant; empty when nothing is near.

    Near is what is spelled the same but for capitals and dashes, what begins with the word, or what
    is a slip or two away: one for short words, more for long ones. Nothing is near what is known.
    """
    plain = _folded(word)
    words = list(dict.fromkeys(known))
    if not plain or len(plain) > _LONGEST_WORD or word in words:
        return ""
    found: list[tuple[int, str]] = []
    for candidate in words:
        other = _folded(candidate)
        if plain == other:
            found.append((0, candidate))
        elif len(plain) > 2 and other.startswith(plain):
            found.append((1, candidate))
        else:
            most = min(len(plain), len(other)) // 3
            if most and (slips := _slips(plain, other, most)) <= most:
                found.append((slips, candidate))
    # Of several that are equally near, the first that is known.
    near = min(found, key=lambda one: one[0], default=None)
    return f"did you mean `{near[1]}`?" if near else ""


def _folded(word: str) -> str:
    return word.lower().replace("_", "-").strip("-")


def _slips(one: str, other: str, most: int) -> int:
    """How many letters to add, leave out, change, or swap with their neighbour.

    Beyond `most` it is not counted to the end.
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        new = [at]
        for place, found in enumerate(other, 1):
            least = min(row[place] + 1, new[-1] + 1, row[place - 1] + (letter != found))
            swapped = at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == found
            new.append(min(least, before[place - 2] + 1) if swapped else least)
        before, row = row, new
        if min(row) > most:
            break
    return row[-1] if min(row) <= most else most + 1
