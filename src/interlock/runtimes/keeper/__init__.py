"""The keeper: a small process that starts and reaps tasks, and outlives the server.

Only a parent learns an exit code, so the parent is not the server. The keeper writes each intent,
start and end to its own journal, serves one Unix socket in the data directory, and goes by itself
when it has nothing left to keep. It knows nothing of Jobs, locks or retries, imports nothing but
the nouns, and never acts on an order that is not durable yet.
"""
