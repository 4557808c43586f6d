"""A Bot API request: its parameters and uploaded files."""
