"""Sizes of tests. ``make test`` uses the usual ones; ``AUTOPOST_FULL=1 make test`` takes as long as it takes."""

import os

FULL = bool(os.environ.get("AUTOPOST_FULL"))
