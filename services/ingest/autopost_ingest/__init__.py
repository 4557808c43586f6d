"""Takes posts in by webhook and feed, and enqueues them."""
