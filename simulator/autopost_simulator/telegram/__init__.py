"""The Telegram Bot API, imitated."""
