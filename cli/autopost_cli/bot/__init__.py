"""`autopost bot`."""
