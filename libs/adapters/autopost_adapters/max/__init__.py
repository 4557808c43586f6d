"""MAX: the same contract over its own API."""

from autopost_adapters.max.send import MaxAdapter

__all__ = ["MaxAdapter"]
