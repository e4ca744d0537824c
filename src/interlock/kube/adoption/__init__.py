"""Adoption: batch Jobs and pods of others that ask for a Queue by a label.

The package owns what such an object says (`models`, `reading`), the Job that stands for it, and
that it does not run before that one is let in (`decide`, `adopter`). Letting it run, reporting and
stopping are the runtime's part, as for any other Job; the webhook holds an object back as it is
created (`holding`).
"""
