"""Pod work: a pod for each attempt, or a whole `batch/v1` Job."""

from __future__ import annotations

from typing import Any

from interlock.resources.metadata import Noun


class TemplateMetadata(Noun):
    """What made objects carry beside their names."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(Noun):
    """A pod, as Kubernetes describes it; one is made for each attempt of each task."""

    #: A Kubernetes pod specification, `kubectl explain pod.spec`. Variables stand for values in
    #: every text of it. How long a pod has to stop is told by `gracePeriod` of the Job.
    spec: dict[str, Any]
    metadata: TemplateMetadata = TemplateMetadata()


class BatchJobTemplate(Noun):
    """A `batch/v1` Job with its own failure policy; one is made for each attempt of each task."""

    #: A Kubernetes Job specification, `kubectl explain job.spec --api-version=batch/v1`.
    #: Variables stand for values in every text of it.
    spec: dict[str, Any]
    metadata: TemplateMetadata = TemplateMetadata()
