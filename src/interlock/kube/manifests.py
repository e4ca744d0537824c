"""Everything that is installed in a cluster, as objects and as text: the same text every time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from interlock.kube.definitions import definitions
from interlock.kube.deployment import deployment
from interlock.kube.installation import Installation, Manifest
from interlock.kube.rbac import rbac

#: What can be asked for alone, in the order in which it has to be installed.
PARTS = ("crds", "rbac", "controller")
#: What is installed when nothing is asked for. A cluster is driven by a controller that runs
#: outside it, until there is one to deploy.
USUAL = ("crds", "rbac")


def manifests(install: Installation, parts: Iterable[str] = USUAL) -> list[Manifest]:
    """The objects of some parts, in the order in which they have to be installed."""
    wanted = set(parts)
    made: list[Manifest] = []
    if "crds" in wanted:
        made += definitions()
    if "rbac" in wanted:
        made += rbac(install)
    if "controller" in wanted:
        made += deployment(install)
    return made


def to_yaml(objects: Iterable[Manifest]) -> str:
    """One document for each object, in the order of its fields."""
    # Dear to import, and needed by this alone.
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines as such, and every part in full."""

        def ignore_aliases(self, _: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return yaml.dump_all(
        objects,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        explicit_start=True,
        width=100,
    )


def to_json(objects: Iterable[Manifest]) -> str:
    """One list that holds them all."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return json.dumps(listed, indent=2, ensure_ascii=False) + "\n"
