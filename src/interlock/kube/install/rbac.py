"""RBAC: no more rights for the controller than it uses, and roles for people.

The registry of kinds says which there are. In one namespace the controller is given nothing of the
cluster but kinds of ours that are outside of namespaces, of which it writes what the system makes
and reads what people do. Two things it then does without: it cannot
ask who somebody is that calls its own API (a cluster role such as `system:auth-delegator`, bound to
its account, lets it), and it does not hear of nodes that are lost, so that a pod there counts as
running until Kubernetes itself removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from interlock.control.lease import LEASE, SYSTEM_NAMESPACE
from interlock.kube.install.installation import Installation, Manifest, labelled
from interlock.resources.kinds import Kind, our_kinds
from interlock.resources.metadata import GROUP

#: Lets a role become part of the ones that every cluster has.
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-{}"
_READ = ("get", "list", "watch")
#: What people do.
_CHANGE = ("create", "update", "patch", "delete", "deletecollection")


def rbac(install: Installation) -> list[Manifest]:
    """The namespace when all are served, the controller's account, all roles and bindings."""
    made = [_namespace(install)] if install.everywhere else []
    account = labelled("v1", "ServiceAccount", install.name, install.namespace)
    made.append(account | {"automountServiceAccountToken": False})
    made += _bound(install, "controller", _controller_rules(install))
    made += _own(install)
    return [*made, *_people(install), *_of_the_cluster(install)]


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
        *_kind_rules(_kinds_in(install)),
        rule("", ("pods",), runs),
        rule("", ("pods/log",), ("get",)),
        rule("batch", ("jobs",), runs),
        rule("", ("events",), ("create", "patch")),
        *(_cluster_rules() if install.everywhere else _place_rules(install)),
    ]


def _kinds_in(install: Installation) -> list[Kind]:
    """The kinds that the roles of an installation speak of; a Role knows those in namespaces."""
    return [kind for kind in our_kinds() if install.everywhere or kind.namespaced]


def _kind_rules(kinds: Sequence[Kind]) -> list[Manifest]:
    """What the controller does to resources of our kinds."""
    statuses = _plurals(kinds, "status", lambda kind: kind.has_status)
    owners = _plurals(kinds, "finalizers", lambda kind: kind.owns)
    made = [
        # People may write these through the controller's own API, if they may at all.
        rule(GROUP, _plurals(kinds), (*_READ, "create", "update", "delete")),
        rule(GROUP, _plurals(kinds, where=lambda kind: kind.is_held_back), ("patch",)),
        rule(GROUP, statuses, ("update",)),
        # Whoever names one as an owner that must wait for its pods, or its Jobs, needs this.
        rule(GROUP, owners, ("update",)),
    ]
    return [one for one in made if one["resources"]]


def _outside_rules(kinds: Sequence[Kind]) -> list[Manifest]:
    """What the controller of one namespace does to kinds outside of namespaces.

    What people write there is for others too, so it only reads it, and says how it goes.
    """
    ours = _plurals(kinds, where=lambda kind: kind.made_by_system)
    made = [
        rule(GROUP, _plurals(kinds), _READ),
        rule(GROUP, ours, ("create", "delete")),
        rule(GROUP, _plurals(kinds, "status", lambda kind: kind.has_status), ("update",)),
        rule(GROUP, _plurals(kinds, "finalizers", lambda kind: kind.owns), ("update",)),
    ]
    return [one for one in made if one["resources"]]


def _plurals(
    kinds: Sequence[Kind], part: str = "", where: Callable[[Kind], bool] = lambda _: True
) -> tuple[str, ...]:
    return tuple(f"{kind.plural}/{part}" if part else kind.plural for kind in kinds if where(kind))


def _cluster_rules() -> list[Manifest]:
    return [
        rule("", ("namespaces",), _READ),
        # A pod on a node that is silent, or gone, is no proof of anything; and nodes have slots.
        rule("", ("nodes",), _READ),
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
    kinds = _kinds_in(install)
    # Why nothing moves may be that nobody leads.
    leads = rule("coordination.k8s.io", ("leases",), ("get",), (LEASE.name,))
    view, edit = [*_seen(kinds), leads], [*_changed(kinds), *_seen(kinds), leads]
    made = []
    for name, rules, parts in (("viewer", view, ("view",)), ("editor", edit, ("edit", "admin"))):
        one = _placed(install, name, rules)
        if install.everywhere:
            one["metadata"]["labels"] |= {_AGGREGATE.format(part): "true" for part in parts}
        made.append(one)
    return made


def _seen(kinds: Sequence[Kind]) -> list[Manifest]:
    statuses = _plurals(kinds, "status", lambda kind: kind.has_status)
    return [rule(GROUP, (*_plurals(kinds), *statuses), _READ)]


def _changed(kinds: Sequence[Kind]) -> list[Manifest]:
    written = _plurals(kinds, where=lambda kind: kind.is_written_by_people)
    return [rule(GROUP, written, _CHANGE)]


def _of_the_cluster(install: Installation) -> list[Manifest]:
    """Rights to kinds of ours outside namespaces, for an installation that serves one namespace."""
    kinds = [kind for kind in our_kinds() if not kind.namespaced]
    if install.everywhere or not kinds:
        return []
    name = install.cluster_name
    return [
        role("ClusterRole", f"{name}-controller", "", _outside_rules(kinds)),
        binding(install, "ClusterRole", f"{name}-controller"),
        role("ClusterRole", f"{name}-viewer", "", _seen(kinds)),
        role("ClusterRole", f"{name}-editor", "", [*_changed(kinds), *_seen(kinds)]),
    ]


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
