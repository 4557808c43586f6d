"""Platforms that do not answer: probes, trials, and groups of which nothing more is claimed."""
