"""Interlock: one control plane for jobs that must run when told, only when allowed, never twice."""

__version__ = "0.1.0"
