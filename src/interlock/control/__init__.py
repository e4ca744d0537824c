"""The loop: caches, work queue, clock, applying decisions, the leader's lease.

It knows how to look, decide and apply for any room, and nothing of what a room decides.
"""
