"""The command line on a cluster: what our own server would answer, and do, is worked out here.

The room reads what the API server holds (Jobs, Locks, the leader's Lease, Events, pods and their
logs) and has the very code of the server answer. What a person orders it writes with their own
rights. It needs no controller, so it can also say that
there is none. It is imported only when the server is a cluster's.
"""
