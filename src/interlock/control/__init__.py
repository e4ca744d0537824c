"""The loop: caches, work queue, clock, applying decisions, the leader's lease.

It knows how to look, decide and apply for any room, and nothing of what a room decides. It owns
the clock, `status.trouble`, and the one way in which anything is written or launched: `Applier`.
It starts no threads, and on a simulated clock and event loop it does the same thing every time.

From the outside in: an `Informer` per kind and `Reports` feed the caches; what changed goes to
`Loop.changed` and `Loop.reported`, which wake keys in the `WorkQueue`; the loop has a room look,
and the `Applier` carries out what it decided, as long as the `Gate` is open. `Election` opens and
shuts the gate. `Garbage` is a room of its own: it collects what has no owner left.

Nothing is exported here, so that those who only need the clock do not load everything.
"""
