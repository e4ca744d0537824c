"""The test kit: builders, contract suites, servers to ask, the simulation and its storms.

It is shipped, so that whoever embeds or extends Interlock can test with what tests Interlock. The
product never imports it.
"""
