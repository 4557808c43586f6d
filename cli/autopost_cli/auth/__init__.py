"""`autopost auth`: bot credentials and status tokens."""
