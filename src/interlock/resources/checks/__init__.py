"""Validation of the kinds: what a resource must keep to beyond its types."""
