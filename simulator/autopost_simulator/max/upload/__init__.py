"""Uploads: their addresses, their host and the files."""
