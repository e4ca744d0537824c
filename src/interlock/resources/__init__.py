"""The nouns: specs, statuses, legal moves, actions and errors.

Everything here is data and pure functions of data. Nothing here reads a clock, a store,
a setting or a file, and nothing here imports another room.
"""
