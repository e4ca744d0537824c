"""The client of an API server: requests, who we are, limits, and refusals in our words.

It knows paths and bodies, and nothing of our kinds.
"""
