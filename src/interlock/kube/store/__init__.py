"""The store of a cluster: our resources, kept by a Kubernetes API server."""
