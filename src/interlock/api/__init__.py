"""The server's door: the Kubernetes-shaped API over a store, for any client that speaks it.

It owns what a request may say and how it is answered: paths, forms, options, refusals, who may
ask. It never decides anything about a Job and never starts work; it reads and writes the store.
"""
