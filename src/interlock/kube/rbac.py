"""Who may do what in a cluster: no more for the controller than it uses, and roles for people."""

from __future__ import annotations

from typing import Any

from interlock.control.lease import LEASE
from interlock.kube.installation import Installation, Manifest, labelled
from interlock.resources.metadata import GROUP

#: Lets a role become part of the ones that every cluster has.
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-{}"
_READ = ("get", "list", "watch")
_WRITE = ("update", "patch")


def rbac(install: Installation) -> list[Manifest]:
    """The namespace when it is ours, the controller's account, all roles and their bindings."""
    made = [_namespace(install)] if install.everywhere else []
    account = labelled("v1", "ServiceAccount", install.name, install.namespace)
    made.append(account | {"automountServiceAccountToken": False})
    made += _role(install, "controller", _controller_rules(install))
    made += _leader(install)
    return [*made, *_people(install)]


def _namespace(install: Installation) -> Manifest:
    made = labelled("v1", "Namespace", install.namespace, "")
    # The controller's own pods need nothing that this forbids.
    made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return made


def _controller_rules(install: Installation) -> list[Manifest]:
    """What the controller does to resources; events go to both groups that clients use."""
    namespaces = _rule("", ("namespaces",), _READ)
    if not install.everywhere:
        # A role in a namespace can let one read that very namespace, and no other.
        namespaces = _rule("", ("namespaces",), ("get",), (install.namespace,))
    return [
        _rule(GROUP, ("jobs",), (*_READ, *_WRITE, "delete")),
        _rule(GROUP, ("jobs/status",), ("get", *_WRITE)),
        # Whoever names a Job as an owner that must wait for its pods needs this.
        _rule(GROUP, ("jobs/finalizers",), ("update",)),
        _rule(GROUP, ("locks",), (*_READ, "create", *_WRITE, "delete")),
        _rule(GROUP, ("locks/status",), ("get", *_WRITE)),
        _rule("", ("pods",), (*_READ, "create", "patch", "delete")),
        _rule("", ("pods/log",), ("get",)),
        _rule("", ("events",), ("create", "patch")),
        _rule("events.k8s.io", ("events",), ("create", "patch")),
        namespaces,
    ]


def _leader(install: Installation) -> list[Manifest]:
    """The lease of the leader, in the controller's own namespace and nowhere else."""
    group = "coordination.k8s.io"
    rules = [
        # A name is not known yet when something is created.
        _rule(group, ("leases",), ("create",)),
        _rule(group, ("leases",), ("get", *_WRITE), (LEASE.name,)),
    ]
    name = f"{install.name}-leader"
    role = labelled("rbac.authorization.k8s.io/v1", "Role", name, install.namespace)
    return [role | {"rules": rules}, _binding(install, "Role", name)]


def _people(install: Installation) -> list[Manifest]:
    """Roles for people. Locks are read only: the system alone writes them."""
    view = [_rule(GROUP, ("jobs", "jobs/status", "locks", "locks/status"), _READ)]
    changes = ("create", *_WRITE, "delete", "deletecollection")
    edit = [_rule(GROUP, ("jobs",), changes), *view]
    made = []
    for name, rules, parts in (("viewer", view, ("view",)), ("editor", edit, ("edit", "admin"))):
        role = _role_alone(install, name, rules)
        if install.everywhere:
            role["metadata"]["labels"] |= {_AGGREGATE.format(part): "true" for part in parts}
        made.append(role)
    return made


def _role(install: Installation, part: str, rules: list[Manifest]) -> list[Manifest]:
    role = _role_alone(install, part, rules)
    return [role, _binding(install, role["kind"], role["metadata"]["name"])]


def _role_alone(install: Installation, part: str, rules: list[Manifest]) -> Manifest:
    kind = "ClusterRole" if install.everywhere else "Role"
    namespace = "" if install.everywhere else install.namespace
    role = labelled("rbac.authorization.k8s.io/v1", kind, f"{install.name}-{part}", namespace)
    return role | {"rules": rules}


def _binding(install: Installation, kind: str, name: str) -> Manifest:
    namespace = "" if kind == "ClusterRole" else install.namespace
    made = labelled("rbac.authorization.k8s.io/v1", f"{kind}Binding", name, namespace)
    made["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    made["subjects"] = [
        {"kind": "ServiceAccount", "name": install.name, "namespace": install.namespace}
    ]
    return made


def _rule(
    group: str, resources: tuple[str, ...], verbs: tuple[str, ...], names: tuple[str, ...] = ()
) -> Manifest:
    made: dict[str, Any] = {"apiGroups": [group], "resources": list(resources)}
    if names:
        made["resourceNames"] = list(names)
    return made | {"verbs": list(verbs)}
