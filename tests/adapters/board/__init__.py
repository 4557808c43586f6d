"""A third platform, for the tests alone: a notice board with an HTTP API of its own.

It is all that a new platform has to bring: limits and ``compile``, an adapter, a table of refusals. Nothing that is
shipped knows of it.
"""
