"""Publishing committed events to the audit stream."""
