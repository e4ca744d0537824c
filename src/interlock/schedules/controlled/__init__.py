"""ControlledJobs: one Job kept running inside windows, exactly one at a time.

`plan` says when something should run, `choosing` which Job it is, `stops` who is told to stop,
`making` what a new Job looks like, `records` and `conditions` what is told about it all, and
`decide` puts them in order.
"""
