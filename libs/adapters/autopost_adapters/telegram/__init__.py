"""The adapter for Telegram."""
