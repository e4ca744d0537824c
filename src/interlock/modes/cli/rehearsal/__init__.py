"""Rehearsals on the command line: `simulate`, `next` and `plan`, by a server's decisions."""
