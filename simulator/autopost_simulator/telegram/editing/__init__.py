"""Messages that are already there: edited, deleted, copied, forwarded."""
