"""Telegram: one bot token, many channels."""

from autopost_adapters.telegram.send import TelegramAdapter

__all__ = ["TelegramAdapter"]
