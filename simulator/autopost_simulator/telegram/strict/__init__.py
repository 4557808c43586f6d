"""The strict profile: parameters that a method does not have, or that are of another type, are refused by name.

The real server ignores them, so a client with a mistake would pass.
"""
