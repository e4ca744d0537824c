"""What a declaration says about trying again, undoing, and time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from interlock.resources.steps import MAX_STEP_RETRIES, BeforeRetry
from interlock.resources.values.durations import Duration, parse_duration
from interlock.sdk.app_errors import DeclarationError

if TYPE_CHECKING:
    from interlock.sdk.declared import StepFunction

#: A length of time: seconds, a timedelta, or text such as "1m30s".
Time = float | timedelta | str


def duration_of(given: Time, what: str) -> Duration:
    """A length of time as definitions have it.

    Raises:
        DeclarationError: It is none.
    """
    if isinstance(given, str):
        try:
            return parse_duration(given)
        except ValueError as error:
            raise DeclarationError(f"{what}: {given!r}: {error}") from None
    seconds: object = given.total_seconds() if isinstance(given, timedelta) else given
    if type(seconds) not in (int, float):
        seconds = -1
    assert isinstance(seconds, (int, float))
    if not 0 <= seconds <= 86_400_000_000:
        raise DeclarationError(f"{what}: {given!r}: expected seconds, a timedelta or such as '90s'")
    return Duration(milliseconds=round(seconds * 1000))


class Retry(Struct, frozen=True):
    """How often to try again, and when: the first retry at once, the n-th after (n-1) x delay."""

    #: Further attempts after the first.
    limit: int = 0
    delay: Time = 0

    def __post_init__(self) -> None:
        if type(self.limit) is not int or not 0 <= self.limit <= MAX_STEP_RETRIES:
            raise DeclarationError(f"Retry.limit: {self.limit!r}: expected 0 to {MAX_STEP_RETRIES}")
        duration_of(self.delay, "Retry.delay")

    @property
    def pause(self) -> Duration:
        """The delay as definitions have it."""
        return duration_of(self.delay, "Retry.delay")


class RollBack(Struct, frozen=True):
    """Undo these steps before the retry, and all that were begun and need them; then run them."""

    steps: Sequence[str | StepFunction[..., Any]]

    def __post_init__(self) -> None:
        if isinstance(self.steps, str) or not self.steps:
            raise DeclarationError(f"RollBack({self.steps!r}): expected a list of steps")


class StepOptions(Struct, frozen=True, kw_only=True):
    """What is said of a step beside what it does."""

    retries: Retry = Retry()
    undo_retries: Retry | None = None
    before_retry: Literal["AsIs", "RollBackFirst"] | RollBack = "AsIs"
    irreversible: bool = False
    undo_covered_by: str | StepFunction[..., Any] | None = None
    timeout: Time | None = None

    def check(self, name: str) -> None:
        """Refuse what makes no sense.

        Raises:
            DeclarationError: Something of it does not.
        """
        known = (BeforeRetry.AS_IS.value, BeforeRetry.ROLL_BACK_FIRST.value)
        before = self.before_retry
        if not isinstance(before, RollBack) and before not in known:
            expected = f"expected {known[0]!r}, {known[1]!r} or RollBack([...])"
            raise DeclarationError(f"step {name}: before_retry: {before!r}: {expected}")
        for field in ("retries", "undo_retries"):
            given = getattr(self, field)
            if not isinstance(given, Retry) and (field == "retries" or given is not None):
                raise DeclarationError(
                    f"step {name}: {field}: {given!r}: expected such as Retry(limit=3, delay=5)"
                )
        if self.irreversible and before != BeforeRetry.AS_IS.value:
            raise DeclarationError(
                f"step {name}: before_retry: an irreversible step is never taken back"
            )
        if self.timeout is not None and not duration_of(self.timeout, f"step {name}: timeout"):
            raise DeclarationError(f"step {name}: timeout: expected more than no time at all")
