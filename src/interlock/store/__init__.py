"""Resources at rest: one contract, several backends.

The room owns what a write makes of a resource (`rules`), which resources a selector means
(`selectors`), and how watchers hear of changes (`watching`). It never decides anything about
Jobs, and never writes a resource that nobody asked it to write: dependents and the contents of
namespaces are collected by the loop.
"""
