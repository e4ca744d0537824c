"""Claims: what a Job must hold before it may start.

A claim is a record in the store that says who holds how much of something, and that is granted by
one compare-and-set. `claim.py` says what a kind of claim must tell of itself; each kind is a module
(`locks.py` is the first). `proof.py` and `candidates.py` hold the rules that are the same for all
kinds, and on which the argument at the head of `admission/decide.py` rests. Nothing in here reads
or writes the world: the reconciler hands in what is known of it.
"""
