"""Postgres, NATS and an S3 server as child processes, for development and tests, not for production."""
