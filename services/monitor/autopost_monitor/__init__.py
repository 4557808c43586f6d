"""Recovers leases, keeps event partitions ahead, measures the queue."""
