"""`autopost publication`."""
