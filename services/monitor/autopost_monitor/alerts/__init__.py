"""Alert conditions, the text of notices, and the targets they are sent to."""
