"""Rehearsals: the real control plane on simulated time, for schedules that users want to try out.

Nothing goes wrong here unless a scenario says so, and nothing is executed: what tasks do is told
by the scenario's work. The same scenario always gives the same history.
"""
