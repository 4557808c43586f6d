"""The ingest service: receives or pulls posts, fetches their media and enqueues them."""
