"""Takes posts in by webhook and enqueues them."""
