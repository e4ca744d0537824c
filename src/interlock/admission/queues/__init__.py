"""Queues: who is granted a part of a quota, and in which order.

A quota is a claim that many share, so one decision grants it to many at a time: `cycle.py` looks at
a whole line on one view and says who is next, `lines.py` keeps the lines so that this takes time in
proportion to the sorts of Jobs in them and not to the Jobs, and `demands.py` says how a single Job
sees its Queue. The proof that no quota is overdrawn is at the head of `cycle.py`.
"""
