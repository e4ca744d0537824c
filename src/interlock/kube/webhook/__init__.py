"""The door of a cluster: what our own server refuses, an API server refuses too, by asking us.

The room owns what is judged (`judging`), the words in which an API server asks and is answered
(`review`, `app`), the certificate it trusts us by (`signing`, `renewal`, `certificate`), and the
objects that tell it to ask (`configuration`). It never decides anything about Jobs that are in:
a Job that got in unasked is refused by the admission room, in the same words.
"""
