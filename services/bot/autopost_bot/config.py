"""The configuration of the bot, from ``AUTOPOST_*``."""

from typing import Annotated

from autopost_runtime.config.load import ServiceConfig
from msgspec import Meta


class BotConfig(ServiceConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_bot"
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Meta(ge=0, le=65535)] = 0
