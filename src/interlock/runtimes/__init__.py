"""Where work happens: processes on this machine, their keeper, and what they print.

It owns starting, stopping and watching attempts, and the files that hold their output. It never
decides what runs, when, or whether it is tried again: it is given orders and gives reports.

Nothing is exported here: the keeper is a process of its own that imports this package, and
must not load what only the server needs.
"""
