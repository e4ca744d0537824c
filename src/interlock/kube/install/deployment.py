"""The controller's Deployment: two pods, apart from each other, with few rights."""

from __future__ import annotations

from interlock.kube.install.installation import WEBHOOK_PORT, Installation, Manifest, labelled

#: Where the controller answers: its API, its probes and its metrics.
PORT = 8470
#: Where the API server asks about Jobs; low ports are for the privileged.
WEBHOOK_LISTEN = 9443
#: Where a scheduler asks about slots, in the pods and at the service.
EXTENDER_LISTEN = 9444
_API, _WEBHOOK, _EXTENDER = "https", "webhook", "extender"


def deployment(install: Installation) -> list[Manifest]:
    """The pods, their service, and how many of them may be taken away at a time."""
    return [_deployment(install), _service(install), _budget(install)]


def _selector(install: Installation) -> Manifest:
    """The labels of the pods. They never change, whatever the version."""
    return {"app.kubernetes.io/name": install.name, "app.kubernetes.io/component": "controller"}


def _deployment(install: Installation) -> Manifest:
    made = labelled("apps/v1", "Deployment", f"{install.name}-controller", install.namespace)
    template = {"metadata": {"labels": _selector(install)}, "spec": _pod(install)}
    made["spec"] = {
        "replicas": install.replicas,
        "selector": {"matchLabels": _selector(install)},
        # One more comes before one goes, so that there is always one to take over.
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": template,
    }
    return made


def _pod(install: Installation) -> Manifest:
    return {
        "serviceAccountName": install.name,
        "automountServiceAccountToken": True,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 30,
        "topologySpreadConstraints": [
            _spread(install, "kubernetes.io/hostname"),
            _spread(install, "topology.kubernetes.io/zone"),
        ],
        "containers": [_container(install)],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }


def _spread(install: Installation, over: str) -> Manifest:
    """Apart where that is possible; a cluster of one node gets both all the same."""
    return {
        "maxSkew": 1,
        "topologyKey": over,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _selector(install)},
    }


def _container(install: Installation) -> Manifest:
    scope = [] if install.everywhere else ["--namespace=$(POD_NAMESPACE)"]
    # In the arguments, so that another policy starts the controllers anew, one after another.
    given = install.wait_for_pods_ready
    extender = [f"--extender-listen=0.0.0.0:{EXTENDER_LISTEN}"] if install.slots else []
    policy = [f"--wait-for-pods-ready={given}"] if given else []
    return {
        "name": "controller",
        "image": install.image,
        "command": ["interlock", "controller"],
        "args": [
            f"--listen=0.0.0.0:{PORT}",
            f"--webhook-listen=0.0.0.0:{WEBHOOK_LISTEN}",
            "--lease-namespace=$(POD_NAMESPACE)",
            *scope,
            *policy,
            *extender,
            f"--adopt-workloads={str(install.adopts).lower()}",
        ],
        "env": [
            _own("POD_NAME", "metadata.name"),
            _own("POD_NAMESPACE", "metadata.namespace"),
        ],
        "ports": [
            {"name": _API, "containerPort": PORT, "protocol": "TCP"},
            {"name": _WEBHOOK, "containerPort": WEBHOOK_LISTEN, "protocol": "TCP"},
            *([_extender_port("containerPort")] if install.slots else []),
        ],
        "startupProbe": _probe("/livez", period=2, failures=30),
        "livenessProbe": _probe("/livez", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=5, failures=2),
        # No limit on the processor: a leader that is throttled cannot renew its lease.
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"memory": "2Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _own(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": _API, "scheme": "HTTPS"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _service(install: Installation) -> Manifest:
    made = labelled("v1", "Service", install.name, install.namespace)
    made["spec"] = {
        "selector": _selector(install),
        "ports": [
            {"name": _API, "port": PORT, "targetPort": _API, "protocol": "TCP"},
            {"name": _WEBHOOK, "port": WEBHOOK_PORT, "targetPort": _WEBHOOK, "protocol": "TCP"},
            *([_extender_port("port", targetPort=_EXTENDER)] if install.slots else []),
        ],
    }
    return made


def _extender_port(field: str, **more: str) -> Manifest:
    return {"name": _EXTENDER, field: EXTENDER_LISTEN, **more, "protocol": "TCP"}


def monitor(install: Installation) -> list[Manifest]:
    """Has Prometheus read the metrics, where its operator runs; its kinds must be installed."""
    made = labelled("monitoring.coreos.com/v1", "ServiceMonitor", install.name, install.namespace)
    made["spec"] = {
        "selector": {"matchLabels": {"app.kubernetes.io/name": install.name}},
        "namespaceSelector": {"matchNames": [install.namespace]},
        "endpoints": [
            {
                "port": _API,
                "path": "/metrics",
                "scheme": "https",
                # Prometheus shows who it is; its account must be allowed to get /metrics.
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                "tlsConfig": {
                    "ca": {"secret": {"name": install.secret, "key": "ca.crt"}},
                    "serverName": f"{install.name}.{install.namespace}.svc",
                },
            }
        ],
    }
    return [made]


def _budget(install: Installation) -> Manifest:
    made = labelled("policy/v1", "PodDisruptionBudget", f"{install.name}-controller", install.namespace)  # fmt: skip  # noqa: E501
    made["spec"] = {"maxUnavailable": 1, "selector": {"matchLabels": _selector(install)}}
    return made
