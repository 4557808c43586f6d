"""The monitor: relays the audit log, raises alerts, recovers stuck work and deletes old data."""
