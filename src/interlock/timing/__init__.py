"""The clockwork: cron lines, windows, calendars and zones.

It owns the question at which moments something is due, and answers it with pure functions of
texts and moments. It never starts anything, reads no clock, and knows no kind: what is made
of a due time is decided elsewhere. `docs/clock-changes.md` tells what happens when clocks change.
"""
