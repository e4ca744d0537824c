"""Kubernetes Events: what happens to Jobs and schedules, told where `kubectl describe` shows it."""
