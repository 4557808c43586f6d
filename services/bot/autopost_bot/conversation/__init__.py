"""What the bot does in its chats: take them, decide their turns, send the replies and record how that ended."""
