"""Plans of the client carried out with answers that are there from the start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlock.client.errors import UnreachableError
from interlock.client.target import Target
from interlock.sdk.asking import Site
from interlock.sdk.effects import Call, Effect, Emit, Open, Pause, Plan, Receive, Renew, Reply, Tick


def a_site(*, has_status_api: bool | None = True) -> Site:
    site = Site(Target("http://127.0.0.1:1"), "default", patience_s=5)
    site.has_status_api = has_status_api
    return site


def said(status: int, body: object = None, **headers: str) -> Reply:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, told, b"" if body is None else json.dumps(body).encode())


class Played:
    """Carries out a plan with answers that are there from the start, on a clock of its own."""

    def __init__(self, *answers: object) -> None:
        self._answers: Iterator[object] = iter(answers)
        self.asked: list[Call] = []
        self.paused: list[float] = []
        self.told: list[Any] = []
        self.now = 0.0

    def __call__(self, plan: Plan[Any], *, most: int | None = None) -> Any:
        try:
            step = next(plan)
            while True:
                if isinstance(step, Emit):
                    self.told.append(step.value)
                    if len(self.told) == most:
                        return None
                    step = plan.send(None)
                    continue
                try:
                    result = self._do(step)
                except UnreachableError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(result)
        except StopIteration as stop:
            return stop.value

    def _do(self, step: Effect) -> object:
        match step:
            case Tick():
                return self.now
            case Pause(seconds):
                self.paused.append(seconds)
                self.now += seconds
                return None
            case Renew():
                return False
            case Call() | Open() | Receive():
                if not isinstance(step, Receive):
                    self.asked.append(step.call if isinstance(step, Open) else step)
                answer = next(self._answers)
                if isinstance(answer, tuple):  # It takes its time.
                    taken, answer = answer
                    self.now += taken
                if isinstance(answer, Exception):
                    raise answer
                return answer
            case _:
                raise AssertionError(step)
