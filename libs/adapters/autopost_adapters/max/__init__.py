"""The adapter for MAX."""
