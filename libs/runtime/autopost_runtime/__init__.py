"""What every service stands on: config, lifecycle, Postgres, JetStream, S3, HTTP, telemetry, health."""
