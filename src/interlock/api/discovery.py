"""API discovery: the documents by which clients learn of groups, versions and kinds."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

from interlock import __version__
from interlock.resources.kinds import KINDS, Kind

#: The Kubernetes version whose promises the API keeps. Clients compare it with their own.
KUBERNETES_MINOR = 32
READ_VERBS = ("get", "list", "watch")
WRITE_VERBS = ("create", "delete", "deletecollection", "patch", "update")
#: Nobody but the control plane writes a status.
STATUS_VERBS = ("get",)


def verbs_of(kind: Kind) -> tuple[str, ...]:
    """What people may do with a kind."""
    return READ_VERBS if kind.made_by_system else tuple(sorted(READ_VERBS + WRITE_VERBS))


def group_versions() -> dict[tuple[str, str], list[Kind]]:
    """The kinds of each group and version."""
    found: dict[tuple[str, str], list[Kind]] = {}
    for kind in KINDS.values():
        found.setdefault((kind.group, kind.version), []).append(kind)
    return found


@cache
def version_document() -> dict[str, Any]:
    """What `kubectl version` shows."""
    return {
        "major": "1",
        "minor": str(KUBERNETES_MINOR),
        "gitVersion": f"v1.{KUBERNETES_MINOR}.0+interlock.{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


@cache
def core_versions() -> dict[str, Any]:
    """The versions of the group without a name."""
    versions = [version for group, version in group_versions() if not group]
    return {
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }


@cache
def group_list() -> dict[str, Any]:
    """All named groups."""
    names = [group for group, _ in group_versions() if group]
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [group_document(n) for n in names],
    }


def group_document(name: str) -> dict[str, Any] | None:
    """One group and its versions, or None when there is no such group."""
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for group, version in group_versions()
        if group == name
    ]
    if not versions or not name:
        return None
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": versions,
        "preferredVersion": versions[0],
    }


def resource_list(group: str, version: str) -> dict[str, Any] | None:
    """The kinds of a group and version, or None when there is no such version."""
    kinds = group_versions().get((group, version))
    if kinds is None:
        return None
    resources = [entry for kind in kinds for entry in _entries(kind)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version,
        "resources": resources,
    }


def _entries(kind: Kind) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": list(verbs_of(kind)),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if not kind.has_status:
        return [entry]
    status = {
        "name": f"{kind.plural}/status",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": list(STATUS_VERBS),
    }
    return [entry, status]


def aggregated(version: str, *, core: bool) -> dict[str, Any]:
    """Every group, version and kind in one document, which spares clients a dozen requests."""
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None} if group else {},
            "versions": [
                {
                    "version": name,
                    "resources": [_aggregated_kind(kind) for kind in kinds],
                    "freshness": "Current",
                }
            ],
        }
        for (group, name), kinds in group_versions().items()
        if core is not bool(group)
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _aggregated_kind(kind: Kind) -> dict[str, Any]:
    group_version_kind = {"group": kind.group, "version": kind.version, "kind": kind.name}
    entry: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": group_version_kind,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(verbs_of(kind)),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.has_status:
        entry["subresources"] = [
            {
                "subresource": "status",
                "responseKind": group_version_kind,
                "verbs": list(STATUS_VERBS),
            }
        ]
    return entry
