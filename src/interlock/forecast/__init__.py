"""Forecasts: what is next, what a change would do, and a timeline of both what was and will be.

The same decisions that the rooms make, on what is stored and on a simulated clock. This room owns
the answers as data, and the rehearsal that plays scenarios; it never writes to a store that is in
use, and draws nothing: terminals and pictures are the command line's.
"""
