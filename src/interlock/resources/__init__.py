"""The nouns: specs, statuses, legal moves and actions.

Everything here is data and pure functions of data. Nothing here reads a clock, a store,
a setting or a file, and nothing here imports another room but the clockwork (`timing`). The values
that nouns are made of are in `values`, what a kind must keep to in `checks`, the way in for what
comes from outside in `door`, and what others are told of the kinds in `describe`.
"""
