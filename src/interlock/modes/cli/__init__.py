"""The command line: what people type, and how answers look in a terminal.

It speaks HTTP to a server and knows nothing of how the server works. It must start fast: `main`
and `table` import almost nothing, each verb is imported when it is asked for, and what is heavy
(YAML, TLS, the nouns' types) is imported by the verbs that need it, when they need it.
"""
