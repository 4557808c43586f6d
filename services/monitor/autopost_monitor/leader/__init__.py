"""Periodic jobs, each run by one leader among all replicas."""
