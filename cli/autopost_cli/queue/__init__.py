"""`autopost queue`."""
