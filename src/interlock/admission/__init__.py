"""Whether a Job may start: locks, their lines, and what a Job waits for.

It owns every Lock record and the `status.admission` of every Job. It never starts or stops
work: it says that a Job may run, and the execution room takes it from there.
"""
