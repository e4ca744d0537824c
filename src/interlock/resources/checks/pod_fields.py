"""The fields that Kubernetes knows where people misspell them most: of pods, containers and Jobs.

They are those of Kubernetes 1.36. A cluster would leave an unknown one out without a word, and
`comand` would run the image's own program.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Of a pod's specification.
POD_FIELDS = _names(
    """
    activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy
    enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers
    hostname hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os
    overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims
    resources restartPolicy runtimeClassName schedulerName schedulingGates schedulingGroup
    securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace
    subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes
    """
)
#: Of a container, and of one that runs before the others.
CONTAINER_FIELDS = _names(
    """
    args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports
    readinessProbe resizePolicy resources restartPolicy restartPolicyRules securityContext
    startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty
    volumeDevices volumeMounts workingDir
    """
)
#: Of a `batch/v1` Job's specification.
BATCH_JOB_FIELDS = _names(
    """
    activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions
    managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy
    podReplacementPolicy selector successPolicy suspend template ttlSecondsAfterFinished
    """
)

#: Fields of a pod that Interlock cannot run, each with the reason and what to use instead.
REFUSED_IN_POD = {
    "nodeName": (
        "binds the pod past the scheduler, so that nothing could hold it back;"
        " use nodeSelector or affinity"
    ),
    "ephemeralContainers": ("are added to pods that run already; use containers or initContainers"),
}
#: The same of a `batch/v1` Job.
REFUSED_IN_BATCH_JOB = {
    "suspend": "is how Interlock holds it back until the Job may start; use spec.suspend",
    "selector": "is made by Kubernetes for each batch Job; leave it out",
    "manualSelector": "would let two batch Jobs share pods; leave it out",
    "managedBy": "names who runs it, and only the cluster's own controller is known; leave it out",
    "ttlSecondsAfterFinished": (
        "would remove it before its end is recorded; use spec.ttlAfterFinished"
    ),
}
