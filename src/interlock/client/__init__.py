"""The HTTP client of an Interlock server, or of a cluster with our kinds: small, quick to start.

It finds the server, proves who asks, and turns answers into dictionaries and refusals into errors.
What only our own server answers is worked out in `cluster` from what a cluster stores. It prints
warnings, and nothing else.
"""
