"""Postgres, NATS and an S3 server as child processes: for the laptop and the tests, never for production."""
