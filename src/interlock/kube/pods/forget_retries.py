"""Retries of refused forgetting: what may not be let go of now is let go of once it may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from interlock.errors import FencedError, InterlockError
from interlock.kube.pods.background import Background
from interlock.kube.pods.fan_out import for_each
from interlock.resources.tasks import TaskId

#: The first delay, and the longest: rights may be missing for days.
_FIRST_S = 5.0
_LONGEST_S = 300.0
_ABOUT = "forget"


class ForgetRetries:
    """Forgets attempts, and keeps at it where the server refuses.

    Nobody else would: whoever asks to forget an attempt counts on it no more. What fails because
    nobody answers is left to whoever asked, as it concerns all that was asked.
    """

    def __init__(self, errands: Background, forget: Callable[[TaskId], Awaitable[None]]) -> None:
        self._errands = errands
        self._forget = forget
        self._refused: dict[TaskId, None] = {}
        self._delay_s = _FIRST_S

    async def forget(self, task: TaskId) -> None:
        """Forget an attempt now, or as soon as that is not refused any more.

        Raises:
            FencedError: Another leader has taken over.
            UnavailableError: Nothing is known of it.
        """
        try:
            await self._try(task)
        except FencedError:
            raise
        except InterlockError as error:
            if error.retryable:
                raise
            self._refused[task] = None
            if len(self._refused) == 1:
                self._delay_s = _FIRST_S
                self._later()

    async def _try(self, task: TaskId) -> None:
        await self._forget(task)
        self._refused.pop(task, None)

    def _later(self) -> None:
        self._errands.later(_ABOUT, self._delay_s, self._begin)

    def _begin(self) -> None:
        self._errands.run(_ABOUT, self._try_all)

    async def _try_all(self) -> None:
        tasks = tuple(self._refused)
        errors = await for_each(tasks, self._try)
        if any(isinstance(error, FencedError) for error in errors):
            return
        all_refused = len(errors) == len(tasks)
        self._delay_s = min(self._delay_s * 2, _LONGEST_S) if all_refused else _FIRST_S
        if self._refused:
            self._later()
