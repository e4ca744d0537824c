"""The slot scheduler: a second Kubernetes scheduler, for pods that ask for slots and for ghosts.

It is the usual program with a configuration that has it ask our extender. Pods come to it by
`schedulerName`; all others stay with the cluster's own. An extender that does not answer holds up
whom it is asked about, and nobody else.
"""

from __future__ import annotations

from typing import Any

from interlock.kube.install.installation import Manifest, labelled
from interlock.kube.slots.app import FILTER, PREEMPT, PREFIX
from interlock.kube.slots.naming import GHOST_PRIORITY, SCHEDULER

#: Where the extender listens in a controller's pod, and at the service.
EXTENDER_LISTEN = 9444
#: Below every pod that does not say, so that any of them can have a ghost's room; and no lower than
#: what cluster autoscalers take for pods that matter.
GHOST_PRIORITY_VALUE = -10
_AUTHORITY = "/etc/interlock"
_CONFIGURATION = "/etc/kube-scheduler"
_RBAC = "rbac.authorization.k8s.io"


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
