"""MAX: the same contract over its own API."""
