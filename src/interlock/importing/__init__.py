"""Definitions of other systems, as ours: same behaviour, and a report of what does not carry over.

Each module reads one kind of file and fills a `Draft`. Nothing here asks a server, and what comes
out has passed the same door as everything else.
"""
