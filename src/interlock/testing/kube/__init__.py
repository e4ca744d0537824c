"""A real Kubernetes control plane for tests: five programs, no container, no cloud.

The room owns the programs' versions, how they are found and started on free ports, who may log
in, and the fake nodes whose pods do what their annotations say. It never builds the programs
(`make kube` does) and never knows what is tested with them.
"""

from interlock.testing.kube.access import Access, Answer, KubeError, User
from interlock.testing.kube.binaries import VERSIONS, Programs, find
from interlock.testing.kube.cluster import Cluster
from interlock.testing.kube.component import ComponentError
from interlock.testing.kube.sharing import shared

__all__ = [
    "VERSIONS",
    "Access",
    "Answer",
    "Cluster",
    "ComponentError",
    "KubeError",
    "Programs",
    "User",
    "find",
    "shared",
]
