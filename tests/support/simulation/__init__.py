"""The whole control plane in one thread, on a seeded scheduler that lets things go wrong.

A world holds two competing control planes, a store, a machine, people and fate. Everything that
happens in it follows from its seed. It owns the promises as checks over what really happened;
it never changes how the code under test behaves.
"""
