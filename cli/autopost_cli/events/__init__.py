"""`autopost events`: read the audit stream."""
