"""What Kueue knows, as tests write it, and what the import makes of it."""

from __future__ import annotations

from typing import Any

import yaml
from import_clocks import imported

from interlock.importing.kueue import import_kueue

V1, V2 = "v1beta1", "v1beta2"
BY_NAME = "kubernetes.io/metadata.name"


def flavor(name: str = "default", **quotas: Any) -> dict[str, Any]:
    """A flavor of a group, with what each resource says."""
    resources = [
        {"name": one, **(said if isinstance(said, dict) else {"nominalQuota": said})}
        for one, said in quotas.items()
    ]
    return {"name": name, "resources": resources}


def group(*flavors: dict[str, Any]) -> dict[str, Any]:
    covered = [one["name"] for one in flavors[0]["resources"]]
    return {"coveredResources": covered, "flavors": list(flavors)}


def a_queue(name: str = "main", version: str = V2, **spec: Any) -> dict[str, Any]:
    spec = {"namespaceSelector": {}, "resourceGroups": [group(flavor(cpu=4))]} | spec
    spec = {field: value for field, value in spec.items() if value is not None}
    return an_object("ClusterQueue", name, version=version, spec=spec)


def local(
    namespace: str = "team", name: str = "jobs", queue: str = "main", **spec: Any
) -> dict[str, Any]:
    return an_object("LocalQueue", name, namespace, spec={"clusterQueue": queue, **spec})


def a_configuration(version: str = V2, waits: Any = None, **fields: Any) -> dict[str, Any]:
    made = {"apiVersion": f"config.kueue.x-k8s.io/{version}", "kind": "Configuration", **fields}
    return made if waits is None else made | {"waitForPodsReady": waits}


def a_job(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec = {"suspend": True, "template": {"spec": pod}} | spec
    metadata = {"name": "train", "namespace": "team", "labels": {QUEUE: "jobs"}} | (metadata or {})
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


QUEUE, CLASS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"


def an_object(
    kind: str, name: str, namespace: str = "", version: str = V2, **parts: Any
) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": kind,
        "metadata": metadata,
        **parts,
    }


def urgent(value: int = 1000) -> dict[str, Any]:
    return an_object("WorkloadPriorityClass", "urgent", value=value)


def names(*values: str, operator: str = "In", key: str = BY_NAME) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def made_of(*documents: dict[str, Any], **wishes: Any) -> list[dict[str, Any]]:
    objects, _ = imported(import_kueue, yaml.safe_dump_all(documents), **wishes)
    return objects


def spec_of(*documents: dict[str, Any], **wishes: Any) -> dict[str, Any]:
    """What the first object says."""
    objects, draft = imported(import_kueue, yaml.safe_dump_all(documents), **wishes)
    assert objects, draft.notes
    found: dict[str, Any] = objects[0]["spec"]
    return found


def told(*documents: dict[str, Any], **wishes: Any) -> list[str]:
    _, draft = imported(import_kueue, yaml.safe_dump_all(documents), **wishes)
    return [f"{note.where}: {note.what}" for note in draft.notes]
