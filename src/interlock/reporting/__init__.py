"""What people and programs are told: why, lists of Jobs, the change stream, logs, locks, history.

It reads the caches, the store and the logs, and writes nothing, ever.
"""
