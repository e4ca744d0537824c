"""A command as a pod: what a cluster runs in the place of a process."""

from __future__ import annotations

import re
from typing import Any

#: The container that everything of ours runs in.
MAIN = "main"
#: What Interlock puts values in for, or takes for a plain `${`, before a cluster sees the text.
_OURS = re.compile(r"(\$\$\{|\$\{[^${}]*\})")
#: What a cluster would read as more than a dollar sign: $$ and $(NAME).
_THEIRS = re.compile(r"\$(?=[$(]|\Z)")


def pod_of(
    image: str,
    command: list[str],
    *,
    args: list[str] | None = None,
    env: dict[str, str] | None = None,
    working_dir: str = "",
) -> dict[str, Any]:
    """The pod template of a command; its container sees every word as it was typed."""
    container: dict[str, Any] = {
        "name": MAIN,
        "image": image,
        "command": list(map(plain, command)),
    }
    if args:
        container["args"] = list(map(plain, args))
    if env:
        container["env"] = [{"name": name, "value": plain(value)} for name, value in env.items()]
    if working_dir:
        container["workingDir"] = working_dir
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def plain(text: str) -> str:
    """The text written so that a cluster changes nothing in it; our own ${...} stay ours."""
    parts = _OURS.split(text)
    return "".join(
        part if place % 2 else _THEIRS.sub("$$", part) for place, part in enumerate(parts)
    )
