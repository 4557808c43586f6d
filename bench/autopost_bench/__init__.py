"""`autopost bench`: how fast it is, against other queues and against the machine, in one run.

Every bar is a ratio of two figures that were measured side by side, so that a slow machine slows both. A subject is a
module with ``measure(server, figures)``; ``bars`` says what is asked of the figures.
"""

from autopost_bench.command import bench

__all__ = ["bench"]
