"""Other queues, measured in the same run."""
