"""Whether a Job may start: claims, their lines, and what a Job waits for.

It owns the records of claims, of which locks are the first kind, and the `status.admission` of
every Job. It never starts or stops work: it says that a Job may run, and the execution room takes
it from there.
"""
