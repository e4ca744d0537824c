"""Files that are no manifests yet: something renders them first, and we tell what.

Helm templates, kustomize's patches and OpenShift's Templates lie in repositories beside manifests
and look like them. Read as they are, they would only be told to lack fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

#: What only Helm puts between braces; `{{.Names}}` may be anybody's.
_HELM = re.compile(
    r"\{\{-?\s*(?:\.(?:Values|Release|Chart|Capabilities|Template|Files)\b"
    r"|(?:include|template|define|toYaml|tpl)\s|/\*|(?:if|range|with)\s.*?\}\}|end\s*-?\}\})"
)
_JSON_PATCH = re.compile(r"^-?\s*[\"']?op[\"']?:\s*[\"']?(?:add|replace|remove|test)", re.MULTILINE)
#: The importer of each kind, as it is typed.
_SORTS = {
    "CronJob": "cronjob",
    "ControlledJob": "controlledjob",
    "JobConfig": "furiko",
    "ClusterQueue": "kueue",
}


def in_text(text: str, kind: str) -> str:
    """What a file is that cannot be read; empty when nobody knows."""
    if _HELM.search(text):
        return _helm(kind)
    return _patch(kind, "a list of changes") if _JSON_PATCH.search(text) else ""


def in_kind(found: object, kind: str) -> str:
    """What an object of another kind is; empty when it is just another kind."""
    match found:
        case "Template":
            command = f"`oc process --local -o yaml -f FILE | interlock import {_SORTS[kind]} -`"
            return f"it is an OpenShift Template, and {command} fills it in"
        case "Kustomization" | "Component":
            return _patch(kind, f"{found} of kustomize")
        case "Job" if kind == "JobConfig":
            return "a Job of Furiko is one run: `interlock run NAME` makes one of a JobConfig"
        case _:
            return ""


def in_object(data: dict[str, Any], kind: str) -> str:
    """What an object of the right kind is when it is no whole one; empty when it seems whole."""
    if any(_HELM.search(text) for text in _texts(data)):
        return _helm(kind)
    spec = data.get("spec")
    if kind != "CronJob" or not isinstance(spec, dict):
        return ""
    lacking = [f"spec.{name}" for name in ("schedule", "jobTemplate") if name not in spec]
    containers = _containers(spec)
    if not lacking and any(isinstance(one, dict) and "image" not in one for one in containers):
        lacking = ["the image of a container"]
    if not lacking:
        return ""
    return _patch(kind, f"without {' and '.join(lacking)}")


def _helm(kind: str) -> str:
    command = f"`helm template CHART | interlock import {_SORTS[kind]} -`"
    return f"it looks like a Helm template, and {command} renders it"


def _patch(kind: str, what: str) -> str:
    command = f"`kubectl kustomize DIRECTORY | interlock import {_SORTS[kind]} -`"
    return f"it looks like a part for kustomize ({what}), and {command} puts the parts together"


def _containers(spec: dict[str, Any]) -> list[Any]:
    """The containers of a CronJob, as far as there are any."""
    found: Any = spec
    for name in ("jobTemplate", "spec", "template", "spec", "containers"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, list) else []


def _texts(value: object) -> Iterator[str]:
    """Every text in some data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
