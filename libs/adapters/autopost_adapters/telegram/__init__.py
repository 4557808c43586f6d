"""Telegram: one bot token, many channels."""
