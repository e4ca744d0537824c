"""The test kit: builders, contract suites, and servers to ask.

It is shipped, so that whoever embeds or extends Interlock can test with what tests Interlock. The
product never imports it.
"""
