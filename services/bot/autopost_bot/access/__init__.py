"""Who may call the bot, and what every call of its API has in common."""
