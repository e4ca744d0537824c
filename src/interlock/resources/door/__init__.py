"""The door: what comes from outside is read, completed, checked, and let in or refused.

Whatever is wrong is told at once and in full, with the path of every field.
"""
