"""Who may log in to the cluster, and with which files?"""

from __future__ import annotations

import json
import secrets
import select
import time
from pathlib import Path

from interlock.testing.serving import PATIENCE_S
from support.kube.access import Access, User

#: What a user may do from the beginning, beside the administrator.
ROLES = {User.EDITOR: "edit", User.VIEWER: "view"}

_VERBS = {User.EDITOR: ("list", "create"), User.VIEWER: ("list",)}
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_AGAIN_S = 0.05


def write_credentials(url: str, folder: Path) -> Access:
    """Give every user a token; write the API server's list of them and a kubeconfig for each."""
    tokens = {user: secrets.token_hex(16) for user in User}
    access = Access(url, str(folder), tokens)
    lines = [f"{token},{user},{user},{_group(user)}" for user, token in tokens.items()]
    (folder / "tokens.csv").write_text("\n".join(lines) + "\n", "utf-8")
    for user in User:
        told = json.dumps(_kubeconfig(access, user), indent=1)
        access.kubeconfig(user).write_text(told, "utf-8")
    return access


def _group(user: User) -> str:
    return "system:masters" if user is User.ADMIN else "people"


def _kubeconfig(access: Access, user: User) -> dict[str, object]:
    # JSON is YAML.
    cluster = {"server": access.url, "certificate-authority": str(access.authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": access.tokens[user]}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
        "current-context": "tests",
    }


def bind_roles(access: Access) -> None:
    """Let each user do what they are known for, and wait until they can.

    Raises:
        AssertionError: They still cannot after a long time.
    """
    for user, role in ROLES.items():
        access.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", _bound(user, role))
    until = time.monotonic() + PATIENCE_S
    # The rules of these roles are put together by the controller manager, in its own time.
    while not all(_may(access, user, verb) for user in ROLES for verb in _VERBS[user]):
        assert time.monotonic() < until, f"the roles of {list(ROLES)} have no effect"
        select.select([], [], [], _AGAIN_S)


def _bound(user: User, role: str) -> dict[str, object]:
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    return {
        "metadata": {"name": f"tests-{user}"},
        "roleRef": {**group, "kind": "ClusterRole", "name": role},
        "subjects": [{**group, "kind": "User", "name": user}],
    }


def _may(access: Access, user: User, verb: str) -> bool:
    asked = {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "default"}}
    answer = access.ask("POST", _REVIEWS, {"spec": asked}, user=user)
    return bool(answer.body.get("status", {}).get("allowed"))
