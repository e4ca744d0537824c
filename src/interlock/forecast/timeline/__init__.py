"""Timelines: windows, runs, skips and exceptions of each object and day, as data."""
