"""Slots of TestBeds as pods see them: which pod sits in which slot.

A placeholder pod, the *ghost*, holds the room of each slot that nobody is in. The package owns the
ghosts (`ghosts`, `keeper`), the rules by which a slot is reserved for a pod and told to it
(`holds`, `assignment`), and the answers to the Kubernetes scheduler (`protocol`, `extender`,
`app`).

Which slots a bed has, and which Job was granted which, is the slots room's and admission's.
"""
