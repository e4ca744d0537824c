"""A real Kubernetes control plane for tests: five programs, no container, no cloud.

The room owns the programs' versions, how they are found and started on free ports, who may log
in, and the fake nodes whose pods do what their annotations say. It never builds the programs
(`make kube` does) and never knows what is tested with them.
"""

from support.kube.access import Access, Answer, KubeError, User
from support.kube.binaries import VERSIONS, Programs, find
from support.kube.cluster import Cluster
from support.kube.component import ComponentError
from support.kube.sharing import shared

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
