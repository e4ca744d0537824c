"""What our own tests, tools and benchmarks are made of, beside the test kit that is shipped.

The simulation and the storms, a Kubernetes control plane of real programs, both modes compared, and
rooms with their hands tied. `make setup` makes it importable; it is in no wheel.
"""
