"""Updates, and how they reach the webhook of a bot."""
