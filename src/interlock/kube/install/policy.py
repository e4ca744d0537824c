"""The mutating admission policy: what an API server completes in each new Job by itself.

It puts our finalizer on, as our own door does. Without the policy the controller does that when the
Job starts, which takes a write more; with it, nobody has to ask the webhook about that either.

It also drops the record of who wrote which field, unless somebody applies the Job in parts. That
record is kept up to date at every write of a status, and takes an API server as long as the rest of
such a write.

Kubernetes 1.36 is the first to have such policies, so this is no usual part of an installation. An
API server that has just taken our definitions needs up to 5 s to read them for a policy, and until
then it refuses new Jobs (503, try again), whatever the `failurePolicy`.
"""

from __future__ import annotations

from interlock.kube.install.installation import Installation, Manifest, labelled
from interlock.resources.job import JOB_FINALIZER
from interlock.resources.kinds import KINDS

_API = "admissionregistration.k8s.io/v1"

_LACKS_FINALIZER = (
    f"!has(object.metadata.finalizers) || !('{JOB_FINALIZER}' in object.metadata.finalizers)"
)
_FINALIZER = (
    "JSONPatch{op: 'add', path: '/metadata/finalizers', value: has(object.metadata.finalizers)"
    f" ? object.metadata.finalizers + ['{JOB_FINALIZER}'] : ['{JOB_FINALIZER}']}}"
)
_IS_NOT_APPLIED = (
    "has(object.metadata.managedFields)"
    " && object.metadata.managedFields.all(each, each.operation == 'Update')"
)
_NO_RECORD = "JSONPatch{op: 'remove', path: '/metadata/managedFields'}"


def policy(install: Installation) -> list[Manifest]:
    """The policy, and where it holds: where the controller is, so that no Job is held for ever."""
    name = install.cluster_name
    completing = labelled(_API, "MutatingAdmissionPolicy", name, "")
    completing["spec"] = _completing()
    bound = labelled(_API, "MutatingAdmissionPolicyBinding", name, "")
    bound["spec"] = {"policyName": name}
    if not install.everywhere:
        here = {"kubernetes.io/metadata.name": install.namespace}
        bound["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": here}}
    return [completing, bound]


def _completing() -> Manifest:
    kind = KINDS["Job"]
    return {
        # A Job that got in as it was is completed when it starts.
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [kind.group],
                    "apiVersions": [kind.version],
                    "operations": ["CREATE"],
                    "resources": [kind.plural],
                    "scope": "Namespaced",
                }
            ]
        },
        "matchConditions": [{"name": "lacks-our-finalizer", "expression": _LACKS_FINALIZER}],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": f"[{_FINALIZER}] + ({_IS_NOT_APPLIED} ? [{_NO_RECORD}] : [])"
                },
            }
        ],
    }
