"""Notices to the owners of publications that were paused or have failed."""
