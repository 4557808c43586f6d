"""Deleting what is older than its retention period."""
