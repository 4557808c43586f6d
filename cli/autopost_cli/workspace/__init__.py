"""`autopost workspace`."""
