"""The registry of kinds for the command line, as `make docs` writes it."""

from __future__ import annotations

#: As `interlock.resources.kinds.rows` says.
ROWS: tuple[tuple[str, str, tuple[str, ...], str, bool, str], ...] = (
    ("Job", "jobs", ("ijob",), "interlock.dev/v1alpha1", True, "handed over"),
    ("JobConfig", "jobconfigs", ("jc",), "interlock.dev/v1alpha1", True, "handed over"),
    ("ControlledJob", "controlledjobs", ("ctj",), "interlock.dev/v1alpha1", True, "handed over"),
    ("Calendar", "calendars", ("cal",), "interlock.dev/v1alpha1", True, "copied"),
    ("Lock", "locks", (), "interlock.dev/v1alpha1", True, ""),
    ("Queue", "queues", (), "interlock.dev/v1alpha1", False, "copied"),
    ("QueueQuota", "queuequotas", (), "interlock.dev/v1alpha1", False, ""),
    ("TestBed", "testbeds", ("tb",), "interlock.dev/v1alpha1", True, "copied"),
    ("TestBedSlots", "testbedslots", (), "interlock.dev/v1alpha1", True, ""),
    ("Scheduling", "schedulings", ("sched",), "interlock.dev/v1alpha1", True, "copied"),
    ("SchedulingClaims", "schedulingclaims", (), "interlock.dev/v1alpha1", True, ""),
    ("Namespace", "namespaces", ("ns",), "v1", False, ""),
    ("Node", "nodes", ("no",), "v1", False, ""),
    ("Lease", "leases", (), "coordination.k8s.io/v1", True, ""),
)
