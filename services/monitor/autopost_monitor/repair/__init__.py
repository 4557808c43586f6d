"""Jobs that recover expired leases and stuck work, and correct counters."""
