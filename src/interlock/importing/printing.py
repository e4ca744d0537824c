"""Imported definitions as YAML that people like to read and that every reader reads alike."""

from __future__ import annotations

import re
from typing import Any

import yaml

#: Texts that some readers take for something else: true and false, a number to base sixty.
_AMBIGUOUS = re.compile(r"[yYnN]|[0-9]+(?::[0-9]+)+")


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as such, lists indented, nothing shared."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else '"' if _AMBIGUOUS.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def written(objects: list[dict[str, Any]]) -> str:
    """The objects as documents of one file."""
    return "---\n".join(
        yaml.dump(
            made, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
        )
        for made in objects
    )
