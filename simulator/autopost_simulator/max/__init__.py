"""The simulated MAX Bot API."""
