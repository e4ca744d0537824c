"""The only code that speaks to a Kubernetes API server, and what is installed there.

The room owns where the server is and who we are there (`config`, `credentials`), how it is asked
(`client`), how streams of changes are kept up (`watching`), the store that is made of all this
(`store`), and the manifests that teach a cluster our kinds (`definitions`, `manifests`). It never
decides anything about Jobs, and no other room sends a request to a cluster. What it speaks HTTP
with is imported when the first client is opened, so that nobody else pays for it.
"""
