"""Sending one claimed delivery: credentials, slots, media, and the calls to the platform."""
