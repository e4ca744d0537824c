"""The runtime of a cluster: attempts as pods, or as whole `batch/v1` Jobs.

The package owns what such an object looks like (`naming`, `manifest`), what it says about the
attempt (`models`, `reporting`, `batch_reporting`), how all of them are known (`objects`,
`informer`), and what is done to them (`launching`, `stopping`, `unreachable_nodes`, `batch`,
`runtime`). `logs` reads what they print. It never decides when an attempt starts or ends.

Nothing that runs here rests on a lease. An object is created so that it cannot run, and a second
write, which names the uid that the first one was answered with, lets it run. A create that arrives
late starts nothing, and what arrives late after it finds another uid or an object that is going.
"""
