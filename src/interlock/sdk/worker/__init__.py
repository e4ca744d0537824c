"""The worker program: it loads an application once, and runs what a server gives it.

A supervisor keeps worker processes running. Each has one connection, over which it is given
attempts and hands in what came of them, many at a time. It decides nothing: which step comes next,
whether one is tried again, and whether a result counts is the server's word.
"""
