"""The workers' Deployment: pods that load an application and ask the controller for orders.

Their account may open the one path at which workers are served, and do nothing else.
"""

from __future__ import annotations

from interlock.kube.install.deployment import PORT
from interlock.kube.install.installation import Installation, Manifest, labelled
from interlock.kube.install.rbac import role

#: Where the controller serves workers.
CONNECT = "/workers/connect"
#: Kubernetes puts the token of the account here, and a new one before the old one is over.
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_CA_PLACE = "/etc/interlock"


def workers(install: Installation) -> list[Manifest]:
    """The workers' account, its one right, and their pods."""
    account = labelled("v1", "ServiceAccount", _name(install), install.namespace)
    return [
        account | {"automountServiceAccountToken": False},
        *_right(install),
        _deployment(install),
    ]


def _name(install: Installation) -> str:
    return f"{install.name}-worker"


def _right(install: Installation) -> list[Manifest]:
    """A path belongs to no namespace, so the role cannot either."""
    name = f"{install.cluster_name}-worker"
    rules: list[Manifest] = [{"nonResourceURLs": [CONNECT], "verbs": ["get"]}]
    bound = labelled("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", name, "")
    bound["roleRef"] = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": name,
    }
    bound["subjects"] = [
        {"kind": "ServiceAccount", "name": _name(install), "namespace": install.namespace}
    ]
    return [role("ClusterRole", name, "", rules), bound]


def _deployment(install: Installation) -> Manifest:
    made = labelled("apps/v1", "Deployment", _name(install), install.namespace)
    labels = {"app.kubernetes.io/name": install.name, "app.kubernetes.io/component": "worker"}
    made["spec"] = {
        "replicas": install.worker_replicas,
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
        # Steps that run when it is told to go finish, as far as they can.
        "terminationGracePeriodSeconds": 120,
        "containers": [_container(install)],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "authority", "secret": authority},
        ],
    }


def _container(install: Installation) -> Manifest:
    server = f"https://{install.name}.{install.namespace}.svc:{PORT}"
    return {
        "name": "worker",
        "image": install.worker_image or install.image,
        "command": ["interlock", "worker"],
        "args": [
            install.worker_app,
            f"--concurrency={install.worker_concurrency}",
            f"--server={server}",
            f"--token-file={_TOKEN}",
            f"--ca-file={_CA_PLACE}/ca.crt",
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "authority", "mountPath": _CA_PLACE, "readOnly": True},
        ],
    }
