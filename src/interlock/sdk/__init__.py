"""The SDK: what Python programs ask of a server or a cluster.

The rules of what is answered are elsewhere; here are plans that say which requests to make, two
wires that carry them out, and the clients people use.
"""
