"""Relays the audit log, watches, alerts, recovers, and forgets what is old."""
