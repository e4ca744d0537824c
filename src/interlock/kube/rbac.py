"""Who may do what in a cluster: no more for the controller than it uses, and roles for people.

In one namespace the controller is given nothing of the cluster. Two things it then does without:
it cannot ask who somebody is that calls its own API (a cluster role such as
`system:auth-delegator`, bound to its account, lets it), and it does not hear of nodes that are
lost, so that a pod there counts as running until Kubernetes itself removes it.
"""

from __future__ import annotations

from typing import Any

from interlock.control.lease import LEASE, SYSTEM_NAMESPACE
from interlock.kube.installation import Installation, Manifest, labelled
from interlock.resources.metadata import GROUP

#: Lets a role become part of the ones that every cluster has.
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-{}"
_READ = ("get", "list", "watch")
_WRITE = ("update", "patch")
#: What says when Jobs run, and the things that own others.
_SCHEDULES = ("jobconfigs", "controlledjobs", "calendars")
_STATUSES = ("jobs/status", "jobconfigs/status", "controlledjobs/status", "locks/status")
_OWNERS = ("jobs/finalizers", "jobconfigs/finalizers", "controlledjobs/finalizers")


def rbac(install: Installation) -> list[Manifest]:
    """The namespace when all are served, the controller's account, all roles and bindings."""
    made = [_namespace(install)] if install.everywhere else []
    account = labelled("v1", "ServiceAccount", install.name, install.namespace)
    made.append(account | {"automountServiceAccountToken": False})
    made += _bound(install, "controller", _controller_rules(install))
    made += _own(install)
    return [*made, *_people(install)]


def _namespace(install: Installation) -> Manifest:
    made = labelled("v1", "Namespace", install.namespace, "")
    if install.namespace == SYSTEM_NAMESPACE:
        # The controller's own pods need nothing that this forbids. In a namespace of another
        # name there may be others.
        made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return made


def _controller_rules(install: Installation) -> list[Manifest]:
    """What the controller does to resources. It writes a status, and what people made, whole."""
    runs = (*_READ, "create", "patch", "delete")
    return [
        # People may write all of these through the controller's own API, if they may at all.
        rule(GROUP, ("jobs",), (*_READ, "create", *_WRITE, "delete")),
        rule(GROUP, _SCHEDULES, (*_READ, "create", "update", "delete")),
        rule(GROUP, _STATUSES, ("update",)),
        # Whoever names one as an owner that must wait for its pods, or its Jobs, needs this.
        rule(GROUP, _OWNERS, ("update",)),
        rule(GROUP, ("locks",), (*_READ, "create", "update", "delete")),
        rule("", ("pods",), runs),
        rule("", ("pods/log",), ("get",)),
        rule("batch", ("jobs",), runs),
        rule("", ("events",), ("create", "patch")),
        *(_cluster_rules() if install.everywhere else _place_rules(install)),
    ]


def _cluster_rules() -> list[Manifest]:
    return [
        rule("", ("namespaces",), _READ),
        # A pod on a node that is silent, or gone, is no proof of anything.
        rule("", ("nodes",), ("get",)),
        # Who somebody is that calls the controller's own API, and what they may do.
        rule("authentication.k8s.io", ("tokenreviews",), ("create",)),
        rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    ]


def _place_rules(install: Installation) -> list[Manifest]:
    # A role in a namespace can let one read that very namespace, and no other.
    return [rule("", ("namespaces",), ("get",), (install.namespace,))]


def _own(install: Installation) -> list[Manifest]:
    """What the controllers share, in their own namespace and nowhere else."""
    leases = "coordination.k8s.io"
    return [
        *_owned(install, "leader", leases, "leases", ("patch",), LEASE.name),
        *_owned(install, "webhook", "", "secrets", ("update",), install.secret),
    ]


def _owned(
    install: Installation, part: str, group: str, plural: str, verbs: tuple[str, ...], name: str
) -> list[Manifest]:
    """The right to make things of a kind, and to read and write the one of that name."""
    rules = [
        # A name is not known yet when something is created.
        rule(group, (plural,), ("create",)),
        rule(group, (plural,), ("get", *verbs), (name,)),
    ]
    named = f"{install.name}-{part}"
    return [role("Role", named, install.namespace, rules), binding(install, "Role", named)]


def _people(install: Installation) -> list[Manifest]:
    """Roles for people. Locks are read only: the system alone writes them."""
    view = [
        rule(GROUP, ("jobs", "jobs/status", "locks", "locks/status"), _READ),
        rule(GROUP, (*_SCHEDULES, "jobconfigs/status", "controlledjobs/status"), _READ),
        # Why nothing moves may be that nobody leads.
        rule("coordination.k8s.io", ("leases",), ("get",), (LEASE.name,)),
    ]
    changes = ("create", *_WRITE, "delete", "deletecollection")
    edit = [rule(GROUP, ("jobs", *_SCHEDULES), changes), *view]
    made = []
    for name, rules, parts in (("viewer", view, ("view",)), ("editor", edit, ("edit", "admin"))):
        one = _placed(install, name, rules)
        if install.everywhere:
            one["metadata"]["labels"] |= {_AGGREGATE.format(part): "true" for part in parts}
        made.append(one)
    return made


def _bound(install: Installation, part: str, rules: list[Manifest]) -> list[Manifest]:
    made = _placed(install, part, rules)
    return [made, binding(install, made["kind"], made["metadata"]["name"])]


def _placed(install: Installation, part: str, rules: list[Manifest]) -> Manifest:
    kind = "ClusterRole" if install.everywhere else "Role"
    namespace = "" if install.everywhere else install.namespace
    return role(kind, f"{install.name}-{part}", namespace, rules)


def role(kind: str, name: str, namespace: str, rules: list[Manifest]) -> Manifest:
    """A role with these rules."""
    made = labelled("rbac.authorization.k8s.io/v1", kind, name, namespace)
    return made | {"rules": rules}


def binding(install: Installation, kind: str, name: str) -> Manifest:
    """Give a role to the controller's account."""
    namespace = "" if kind == "ClusterRole" else install.namespace
    made = labelled("rbac.authorization.k8s.io/v1", f"{kind}Binding", name, namespace)
    made["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    made["subjects"] = [
        {"kind": "ServiceAccount", "name": install.name, "namespace": install.namespace}
    ]
    return made


def rule(
    group: str, resources: tuple[str, ...], verbs: tuple[str, ...], names: tuple[str, ...] = ()
) -> Manifest:
    """What may be done to some resources, or to those of some names alone."""
    made: dict[str, Any] = {"apiGroups": [group], "resources": list(resources)}
    if names:
        made["resourceNames"] = list(names)
    return made | {"verbs": list(verbs)}
