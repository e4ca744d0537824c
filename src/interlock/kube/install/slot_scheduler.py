"""The slot scheduler: a second Kubernetes scheduler, for pods that ask for slots and for ghosts.

It is the usual program with a configuration that has it ask our extender. Pods come to it by
`schedulerName`; all others stay with the cluster's own. An extender that does not answer holds up
whom it is asked about, and nobody else.
"""

from __future__ import annotations

import json
from typing import Any

from interlock.kube.install.deployment import EXTENDER_LISTEN
from interlock.kube.install.installation import Installation, Manifest, labelled
from interlock.kube.install.rbac import role, rule
from interlock.kube.slots.app import FILTER, PREEMPT, PREFIX
from interlock.kube.slots.naming import GHOST_PRIORITY, SCHEDULER

#: Below every pod that does not say, so that any of them can have a ghost's room; and no lower than
#: what cluster autoscalers take for pods that matter.
GHOST_PRIORITY_VALUE = -10
#: What a configuration cannot say. A pod whom nobody answered about victims is woken by nothing
#: that the extender does when it is back: without this it would lie for five minutes.
FLAGS = ("--pod-max-in-unschedulable-pods-duration=10s",)
_AUTHORITY = "/etc/interlock"
_CONFIGURATION = "/etc/kube-scheduler"
_RBAC = "rbac.authorization.k8s.io"
#: Where a scheduler says how it is, by https.
_HEALTH = 10259


def scheduler_configuration(
    url: str, *, namespace: str, authority: str = "", server: str = "", elects: bool = True
) -> dict[str, Any]:
    """What the scheduler is started with; `authority` is the file of whom to trust by https."""
    extender: dict[str, Any] = {
        "urlPrefix": f"{url}{PREFIX}",
        "filterVerb": FILTER,
        "preemptVerb": PREEMPT,
        "nodeCacheCapable": True,
        # Longer than the extender itself takes at most: it always answers.
        "httpTimeout": "5s",
        # Without its answer a pod could be placed where it has no slot.
        "ignorable": False,
    }
    if authority:
        extender |= {"enableHTTPS": True, "tlsConfig": {"caFile": authority, "serverName": server}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"qps": 500, "burst": 1000},
        "leaderElection": {
            "leaderElect": elects,
            "resourceName": SCHEDULER,
            "resourceNamespace": namespace,
        },
        # A sample of the nodes may lack the one on which a pod has its slot.
        "percentageOfNodesToScore": 100,
        # Who waits for a ghost to go waits for less than a second.
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 5,
        "profiles": [{"schedulerName": SCHEDULER}],
        "extenders": [extender],
    }


def ghost_priority() -> Manifest:
    """The priority class of ghosts: everybody may take their room, and they take nobody's."""
    made = labelled("scheduling.k8s.io/v1", "PriorityClass", GHOST_PRIORITY, "")
    return made | {
        "value": GHOST_PRIORITY_VALUE,
        "preemptionPolicy": "Never",
        "globalDefault": False,
        "description": "Placeholders that hold the slots of TestBeds.",
    }


def slot_scheduler(install: Installation) -> list[Manifest]:
    """The scheduler, its account and rights, and the priority class of ghosts."""
    account = labelled("v1", "ServiceAccount", _name(install), install.namespace)
    return [
        ghost_priority(),
        account | {"automountServiceAccountToken": False},
        *_rights(install),
        _configuration(install),
        _deployment(install),
    ]


def _name(install: Installation) -> str:
    return f"{install.name}-slot-scheduler"


def _rights(install: Installation) -> list[Manifest]:
    """What every scheduler of Kubernetes may do, and a lease of its own."""
    leases = "coordination.k8s.io"
    own = role(
        "Role",
        _name(install),
        install.namespace,
        [
            rule(leases, ("leases",), ("create",)),
            rule(leases, ("leases",), ("get", "update"), (SCHEDULER,)),
        ],
    )
    reader = "extension-apiserver-authentication-reader"
    return [
        own,
        _bound(install, "RoleBinding", _name(install), install.namespace, "Role", _name(install)),
        # How it is told who asks for its metrics.
        _bound(install, "RoleBinding", f"{_name(install)}-callers", "kube-system", "Role", reader),
        *(
            _bound(install, "ClusterRoleBinding", f"{_name(install)}-{part}", "", "ClusterRole", of)
            for part, of in (
                ("pods", "system:kube-scheduler"),
                ("volumes", "system:volume-scheduler"),
            )
        ),
    ]


def _bound(
    install: Installation, kind: str, name: str, namespace: str, role_kind: str, role_name: str
) -> Manifest:
    made = labelled(f"{_RBAC}/v1", kind, name, namespace)
    made["roleRef"] = {"apiGroup": _RBAC, "kind": role_kind, "name": role_name}
    made["subjects"] = [
        {"kind": "ServiceAccount", "name": _name(install), "namespace": install.namespace}
    ]
    return made


def _configuration(install: Installation) -> Manifest:
    server = f"{install.name}.{install.namespace}.svc"
    made = labelled("v1", "ConfigMap", _name(install), install.namespace)
    configuration = scheduler_configuration(
        f"https://{server}:{EXTENDER_LISTEN}",
        namespace=install.namespace,
        authority=f"{_AUTHORITY}/ca.crt",
        server=server,
    )
    return made | {"data": {"configuration.json": json.dumps(configuration, indent=2) + "\n"}}


def _deployment(install: Installation) -> Manifest:
    made = labelled("apps/v1", "Deployment", _name(install), install.namespace)
    labels = {
        "app.kubernetes.io/name": install.name,
        "app.kubernetes.io/component": "slot-scheduler",
    }
    made["spec"] = {
        # One schedules, the other stands by.
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod(install)},
    }
    return made


def _pod(install: Installation) -> Manifest:
    authority = {
        "secretName": install.secret,
        # The key beside it is the controller's own.
        "items": [{"key": "ca.crt", "path": "ca.crt"}],
    }
    return {
        "serviceAccountName": _name(install),
        "automountServiceAccountToken": True,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(install)],
        "volumes": [
            {"name": "configuration", "configMap": {"name": _name(install)}},
            {"name": "authority", "secret": authority},
        ],
    }


def _container(install: Installation) -> Manifest:
    return {
        "name": "scheduler",
        "image": install.scheduler_image,
        "command": ["kube-scheduler"],
        "args": [
            f"--config={_CONFIGURATION}/configuration.json",
            f"--secure-port={_HEALTH}",
            *FLAGS,
        ],
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": _HEALTH, "scheme": "HTTPS"},
            "periodSeconds": 10,
            "timeoutSeconds": 15,
            "failureThreshold": 8,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": _HEALTH, "scheme": "HTTPS"},
            "periodSeconds": 5,
            "timeoutSeconds": 15,
            "failureThreshold": 3,
        },
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "configuration", "mountPath": _CONFIGURATION, "readOnly": True},
            {"name": "authority", "mountPath": _AUTHORITY, "readOnly": True},
        ],
    }
