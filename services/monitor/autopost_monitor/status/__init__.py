"""The status page and API, and the metrics of the queue."""
