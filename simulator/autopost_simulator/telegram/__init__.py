"""The simulated Telegram Bot API."""
