"""`autopost channel`."""
