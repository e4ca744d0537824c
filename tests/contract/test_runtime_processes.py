"""Processes on this machine keep every promise of a runtime."""

from __future__ import annotations

from pathlib import Path

from interlock.testing.runtime_contract import RuntimeContract, Scene
from support.workshop import ProcessShop


class TestProcessRuntime(RuntimeContract):
    def play(self, scene: Scene, place: Path) -> None:
        ProcessShop.play(scene, place)
