"""What connected workers do keeps every promise of a runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.resources.tasks import TaskReport
from interlock.testing.runtime_contract import SIGKILL, SIGTERM, RuntimeContract, Scene
from support.worker_workshop import WorkersShop


class TestWorkerRuntime(RuntimeContract):
    def play(self, scene: Scene, place: Path) -> None:
        del place
        WorkersShop.play(scene)

    def code_of(self, report: TaskReport) -> int | None:
        """Functions fail with words; those of the workshop say a code."""
        said = report.message.rpartition("exit code ")[2]
        return int(said) if report.exit_code and said.isdigit() else report.exit_code

    def signal_of(self, report: TaskReport) -> int | None:
        """A worker is asked; one that does not answer in time is not asked again."""
        if not report.stopped:
            return None
        return SIGKILL if report.interrupted else SIGTERM

    @pytest.mark.skip("a function is ready when it runs: nobody tells the two apart")
    def test_what_has_a_probe_is_ready_when_that_says_so(self, tmp_path: Path) -> None:
        raise NotImplementedError

    @pytest.mark.skip("an attempt is over when its function is: what that leaves is the worker's")
    def test_an_attempt_is_over_with_its_last_child(self, tmp_path: Path) -> None:
        raise NotImplementedError
