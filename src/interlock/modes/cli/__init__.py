"""The command line: what people type, and how answers look in a terminal.

It speaks HTTP to a server (`interlock.client`) and knows nothing of how the server works. What is
typed and read is in `input`, how answers look in `output`, and one module for each verb in `verbs`.
It must start fast: `main` and `registry` import almost nothing, each verb is imported when it is
asked for, and what is heavy (YAML, TLS, the nouns' types) is imported by the verbs that need it,
when they need it.
"""
