"""The only code that speaks to a Kubernetes API server, and what is installed there.

The room owns how the server is asked and who we are there (`client`), the store that is made of it
(`store`), the runtime of pods and batch Jobs (`pods`), what a cluster is given so that it knows our
kinds (`install`), the door that it asks about them (`webhook`), and what is told on its objects
(`events`). It never decides anything about Jobs, and no other room sends a request to a cluster.
What it speaks HTTP with is imported when the first client is opened, so that nobody else pays for
it.
"""
