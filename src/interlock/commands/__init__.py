"""What a person may order: stop a Job, run a JobConfig, skip a start, apply a file.

Each command is a pure function of what is stored, who orders it, when, and how: it gives the writes
to be made and what to tell people, or refuses. Whoever calls it, the command line or an HTTP
action, reads before it and writes after it. No command reads a clock or a store, prints
anything, or touches a status: what comes of an order, the rooms decide.
"""
