"""Puts objects into a cluster as `kubectl apply --server-side` does, and waits for definitions."""

from __future__ import annotations

import select
import time
from typing import Any

from interlock.kube.install.installation import Installation
from interlock.kube.install.rbac import rbac
from interlock.resources.kinds import KINDS
from interlock.testing.serving import PATIENCE_S
from support.cluster_store import install
from support.kube.access import Access, Answer, Document, User

#: How the API server names the collections of its own kinds that we install.
_PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Deployment": "deployments",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "ServiceMonitor": "servicemonitors",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
STRICT = "fieldValidation=Strict"
DRY_RUN = f"dryRun=All&{STRICT}"


def collection_of(kind: str, api_version: str, namespace: str = "") -> str:
    """Where the objects of a kind are."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    is_outside = kind in KINDS and not KINDS[kind].namespaced
    place = f"/namespaces/{namespace}" if namespace and not is_outside else ""
    plural = KINDS[kind].plural if kind in KINDS else _PLURALS[kind]
    return f"{root}{place}/{plural}"


def path_of(manifest: Document) -> str:
    """Where an object is."""
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace", "")
    place = collection_of(manifest["kind"], manifest["apiVersion"], namespace)
    return f"{place}/{metadata['name']}"


def apply(access: Access, manifest: Document, options: str = STRICT) -> Answer:
    """Apply an object. Doing so twice, or from two places at once, is harmless."""
    return access.ask(
        "PATCH",
        f"{path_of(manifest)}?fieldManager=tests&force=true&{options}",
        manifest,
        media="application/apply-patch+yaml",
    )


def install_definitions(access: Access) -> None:
    """Make our kinds known to the cluster, and wait until it serves them."""
    install(access)


def condition_of(thing: Document, type: str) -> str:
    """Whether a condition holds; empty when nobody has said."""
    conditions: list[dict[str, Any]] = thing.get("status", {}).get("conditions") or []
    return next((str(one["status"]) for one in conditions if one["type"] == type), "")


def allowed(
    access: Access, user: str, verb: str, resource: str, namespace: str = "", name: str = ""
) -> bool:
    """Whether the cluster lets a user do something; a resource is written group/resource/sub."""
    group, _, rest = resource.partition("/")
    plain, _, sub = rest.partition("/")
    wanted = {"verb": verb, "group": group, "resource": plain, "subresource": sub}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "resourceAttributes": wanted | {"namespace": namespace, "name": name},
        },
    }
    answer = access.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def wait_until_allowed(
    access: Access, user: str, verb: str, resource: str, namespace: str = "", name: str = ""
) -> None:
    """Wait until the API server has heard of a role and its binding; it learns of them by watch.

    Raises:
        AssertionError: The user still may not.
    """
    until = time.monotonic() + PATIENCE_S
    while not allowed(access, user, verb, resource, namespace, name):
        place = f"in {namespace}" if namespace else "everywhere"
        assert time.monotonic() < until, f"{user} may not {verb} {resource} {name} {place}"
        select.select([], [], [], 0.1)


def allow(access: Access, namespace: str) -> None:
    """Let the user CONTROLLER do what the controller's roles let it do, and nothing else."""
    subject = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "User",
        "name": str(User.CONTROLLER),
    }
    for made in rbac(Installation(namespace=namespace, everywhere=False)):
        if made["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            made = made | {"subjects": [subject]}
        if "Role" in made["kind"]:
            plural = made["kind"].lower() + "s"
            place = f"/namespaces/{namespace}" if "namespace" in made["metadata"] else ""
            access.create(f"/apis/rbac.authorization.k8s.io/v1{place}/{plural}", made)


def warnings_of(answer: Answer) -> list[str]:
    """What the API server had to say about an object that it took."""
    return [value for name, value in answer.headers.items() if name.lower() == "warning"]
