"""Recovers leases, relays the audit log, watches the queue."""
