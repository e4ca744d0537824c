"""The assemblies: the embedded server, its settings, and the command line.

It owns which parts run together and how a person starts them. It never decides anything about
Jobs: it builds the rooms, the store, the runtime and the API, and joins them.
"""
