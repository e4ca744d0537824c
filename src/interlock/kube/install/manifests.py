"""The install manifests: all objects of an installation, the same text every time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from interlock.kube.install.definitions import definitions
from interlock.kube.install.deployment import deployment, monitor
from interlock.kube.install.installation import Installation, Manifest
from interlock.kube.install.policy import policy
from interlock.kube.install.rbac import rbac
from interlock.kube.install.slot_scheduler import slot_scheduler
from interlock.kube.install.workers import workers
from interlock.kube.webhook.configuration import webhook

#: What can be asked for alone, in the order in which it has to be installed.
_MAKERS: dict[str, Callable[[Installation], list[Manifest]]] = {
    "crds": lambda _: definitions(),
    "rbac": rbac,
    "controller": deployment,
    "webhook": webhook,
    "policy": policy,
    "monitor": monitor,
    "workers": workers,
    "slots": slot_scheduler,
}
#: Workers are there only when it is said whose application they load, and the scheduler of slots
#: only when there are to be slots.
PARTS = tuple(part for part in _MAKERS if part not in ("workers", "slots"))


def usual_parts(install: Installation) -> tuple[str, ...]:
    """What is installed when no part is asked for.

    A webhook belongs to the whole cluster, so it is no part of what is for one namespace: there
    the admission room refuses what the webhook would have, in the same words. Prometheus' kinds
    may not be there, and the kind of the policy is not in older clusters.
    """
    return ("crds", "rbac", "controller", *(("webhook",) if install.everywhere else ()))


def manifests(install: Installation, parts: Iterable[str] | None = None) -> list[Manifest]:
    """The objects of some parts, in the order in which they have to be installed."""
    wanted = set(usual_parts(install) if parts is None else parts)
    return [one for part, make in _MAKERS.items() if part in wanted for one in make(install)]


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
