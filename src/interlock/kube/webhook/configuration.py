"""Webhook configurations: the objects that tell an API server to ask us.

If nobody answers, a change passes (`failurePolicy: Ignore`). With `Fail`, no Job could be created
or stopped while both replicas are down, though nothing is lost without the answer: a Job that got
in unasked is refused by the admission room in the same words, before anything of it runs, and the
controller adds its finalizer itself. A change of what tasks are made of, made in just that time, is
seen by the next attempt only, and never starts anything twice.

One change must be answered (`Fail`): that a stop that was ordered is put off or taken back. Whether
it is due only a clock can tell, which the rules of definitions have not; and if it was, and no
controller runs, what is stored is all that anybody will ever know of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.kube.install.installation import WEBHOOK_PORT, Installation, Manifest, labelled
from interlock.kube.install.rbac import binding, role, rule
from interlock.kube.webhook.app import COMPLETE_PATH, HOLD_PATH, VALIDATE_PATH
from interlock.kube.webhook.judging import judged, signed
from interlock.resources.adopted import QUEUE_LABEL
from interlock.resources.kinds import JOBS, Kind
from interlock.resources.metadata import GROUP, VERSION

#: The names by which refusals are told apart.
VALIDATING = "jobs.validate.interlock.dev"
PUTTING_OFF = "jobs.stop.interlock.dev"
COMPLETING = "jobs.complete.interlock.dev"
HOLDING_JOBS = "batchjobs.hold.interlock.dev"
HOLDING_PODS = "pods.hold.interlock.dev"
_GROUP = "admissionregistration.k8s.io"


def webhook(install: Installation) -> list[Manifest]:
    """The two configurations, and the right to tell the API server whom to trust there."""
    name = install.cluster_name
    plurals = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    may = [rule(_GROUP, plurals, ("get", "patch"), (name,))]
    return [
        role("ClusterRole", f"{name}-webhook", "", may),
        binding(install, "ClusterRole", f"{name}-webhook"),
        _configuration(install, "Validating", _validating(install), _putting_off(install)),
        _configuration(install, "Mutating", _completing(install), *_holding(install)),
    ]


def _configuration(install: Installation, kind: str, *hooks: Manifest) -> Manifest:
    name = install.cluster_name
    made = labelled(f"{_GROUP}/v1", f"{kind}WebhookConfiguration", name, "")
    return made | {"webhooks": list(hooks)}


def _validating(install: Installation) -> Manifest:
    return _hook(install, VALIDATING, VALIDATE_PATH, [_not_ours(install)], judged())


def _putting_off(install: Installation) -> Manifest:
    puts_off = {
        "name": "puts-a-stop-off",
        "expression": (
            "has(oldObject.spec.killAt) && (!has(object.spec.killAt)"
            " || timestamp(object.spec.killAt) > timestamp(oldObject.spec.killAt))"
        ),
    }
    made = _hook(install, PUTTING_OFF, VALIDATE_PATH, [_not_ours(install), puts_off], (JOBS,))
    (rules,) = made["rules"]
    return made | {"rules": [rules | {"operations": ["UPDATE"]}], "failurePolicy": "Fail"}


def _completing(install: Installation) -> Manifest:
    made = _hook(install, COMPLETING, COMPLETE_PATH, [_not_ours(install)], signed())
    return made | {"reinvocationPolicy": "IfNeeded"}


def _holding(install: Installation) -> tuple[Manifest, ...]:
    """What others made and labelled with a Queue: an API server asks about nothing else of theirs.

    A batch Job that got in unasked the controller suspends. A pod it could not hold back any more,
    so none is created while nobody answers.
    """
    if not install.adopts:
        return ()
    return (
        _hold(install, HOLDING_JOBS, "batch", "jobs", "Ignore"),
        _hold(install, HOLDING_PODS, "", "pods", "Fail"),
    )


def _hold(install: Installation, name: str, group: str, plural: str, failing: str) -> Manifest:
    made = _hook(install, name, HOLD_PATH, [_not_ours(install)], ())
    rules = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": [plural],
        "scope": "Namespaced",
    }
    labelled = {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "Exists"}]}
    return made | {
        "rules": [rules],
        "objectSelector": labelled,
        "failurePolicy": failing,
        "reinvocationPolicy": "IfNeeded",
    }


def _not_ours(install: Installation) -> Manifest:
    """The controller's own writes need no answer, and so cannot wait for one."""
    return {
        "name": "not-the-controller",
        "expression": f"request.userInfo.username != '{install.account}'",
    }


def _by_scope(kinds: tuple[Kind, ...]) -> Iterator[tuple[str, list[str]]]:
    for scope, namespaced in (("Namespaced", True), ("Cluster", False)):
        plurals = [kind.plural for kind in kinds if kind.namespaced is namespaced]
        if plurals:
            yield scope, plurals


def _hook(
    install: Installation,
    name: str,
    path: str,
    conditions: list[Manifest],
    kinds: tuple[Kind, ...],
) -> Manifest:
    hook: Manifest = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        # Whom to trust there is written by the leader.
        "clientConfig": {
            "service": {
                "name": install.name,
                "namespace": install.namespace,
                "path": path,
                "port": WEBHOOK_PORT,
            }
        },
        "rules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": [VERSION],
                "operations": ["CREATE", "UPDATE"],
                # A status is written by the controller alone, and is no part of this.
                "resources": plurals,
                "scope": scope,
            }
            for scope, plurals in _by_scope(kinds)
        ],
        "matchConditions": conditions,
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": 5,
    }
    if not install.everywhere:
        here = {"kubernetes.io/metadata.name": install.namespace}
        hook["namespaceSelector"] = {"matchLabels": here}
    return hook
