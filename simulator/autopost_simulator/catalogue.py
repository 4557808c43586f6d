"""Errors by name, for fault scripts: ``telegram.chat_not_found``, ``max.attachment_not_ready``."""

from autopost_simulator.journal import Platform
from autopost_simulator.max import refusal as max_refusal
from autopost_simulator.reply import Reply
from autopost_simulator.telegram import refusal as telegram_refusal


def is_known(name: str) -> bool:
    return name in names()


def names() -> list[str]:
    telegram = [f"telegram.{name}" for name in telegram_refusal.CATALOGUE]
    return telegram + [f"max.{name}" for name in max_refusal.CATALOGUE]


def platform_of(name: str) -> Platform:
    return "telegram" if name.startswith("telegram.") else "max"


def entry_reply(name: str, retry_after: int | None) -> Reply:
    platform, _, entry = name.partition(".")
    if platform == "telegram":
        return telegram_refusal.named(entry).reply(retry_after)
    return max_refusal.named(entry).reply(retry_after)


def status_reply(platform: Platform, status: int, description: str | None, retry_after: int | None) -> Reply:
    if platform == "telegram":
        return telegram_refusal.by_status(status, description, retry_after).reply(retry_after)
    return max_refusal.by_status(status, description).reply(retry_after)
