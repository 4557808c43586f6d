"""Text with entities, as the Bot API server parses it."""
