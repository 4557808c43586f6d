"""The configuration of the bot, from ``AUTOPOST_*``."""

import re
import resource
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from autopost_adapters.max.api import PUBLIC_URL
from autopost_runtime.config.env_values import show_duration
from autopost_runtime.config.load import ConfigError, HttpUrl, ServiceConfig
from autopost_runtime.http.web import CONNECTIONS
from msgspec import Meta

ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]-]+")
CALL_OF_LEASE = 0.6
"""The longest call, as a fraction of the lease of its chat."""
OTHER_FILES = 200
"""Open files beside the connections: databases, NATS, logs, modules."""


class BotConfig(ServiceConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_bot"
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    stream_clients: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """Open chat streams of this process; further ones are told to come back in 15 seconds."""
    connections: Annotated[int, Meta(ge=1)] = CONNECTIONS
    """Maximum of open connections beside the streams; further ones get 503."""
    connections_per_address: Annotated[int, Meta(ge=1)] | None = None
    """Not limited by default: behind a proxy all connections come from one address."""
    max_api_url: HttpUrl = PUBLIC_URL
    ca_bundle: Path | None = None
    """Certificates in addition to those of the system; MAX has a certificate of the Russian Trusted Root CA."""
    bot_webhook_interval: Annotated[timedelta, Meta(ge=1)] = timedelta(minutes=10)
    """How often MAX is asked where it sends the updates of a bot to."""
    bot_provider_timeout: Annotated[timedelta, Meta(ge=0.01)] = timedelta(seconds=10)
    """For a call to MAX; at most 0.6 of the lease."""
    probe_timeout: Annotated[timedelta, Meta(ge=0.01)] = timedelta(seconds=5)
    """For the question who the bot is, to a platform that did not answer."""
    stall_after: Annotated[timedelta, Meta(ge=0.01)] = timedelta(seconds=5)
    """A rate group whose oldest call has no answer for so long gets no more replies or posts until it has."""
    bot_lease: Annotated[timedelta, Meta(ge=0.1)] = timedelta(seconds=30)
    """How long a chat belongs to a process that does not renew it: so late is a customer answered after a crash."""
    bot_chats_at_once: Annotated[int, Meta(ge=1)] = 1000
    """Chats that this process has at once."""
    bot_chats_of_one_workspace: Annotated[int, Meta(ge=1)] = 400
    """The same of one workspace, so that one whose platform hangs does not take all."""
    bot_chats_per_take: Annotated[int, Meta(ge=1, le=1000)] = 50
    call_drain: Annotated[timedelta, Meta(ge=0.01)] = timedelta(seconds=8)
    """How long a stop waits for calls in flight; unanswered calls then end as ambiguous."""
    drain_timeout: Annotated[timedelta, Meta(ge=0, le=60)] = timedelta(seconds=9.5)
    cors_origins: str = ""
    """Origins whose pages may call the action API, such as ``https://shop.example.com``; several with commas."""

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise ConfigError(problems)

    @property
    def all_connections(self) -> int:
        return self.stream_clients + self.connections

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(origin.strip() for origin in self.cors_origins.split(",") if origin.strip())

    def _problems(self) -> Iterator[str]:
        most = self.bot_lease * CALL_OF_LEASE
        if self.bot_provider_timeout > most:
            yield (
                f"AUTOPOST_BOT_PROVIDER_TIMEOUT is {show_duration(self.bot_provider_timeout)}: must be at most "
                f"{show_duration(most)}, since AUTOPOST_BOT_LEASE is {show_duration(self.bot_lease)}"
            )
        for origin in self.origins:
            if not ORIGIN.fullmatch(origin):
                yield f"AUTOPOST_CORS_ORIGINS: expected origins like https://shop.example.com, got {origin[:80]!r}"
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = self.all_connections + OTHER_FILES
        if hard != resource.RLIM_INFINITY and hard < needed:
            yield (
                f"AUTOPOST_STREAM_CLIENTS: {self.stream_clients} needs {needed} open files, but the limit of this "
                f"process is {hard}; raise the limit (ulimit -n) or set AUTOPOST_STREAM_CLIENTS lower"
            )


def allow_open_files() -> None:
    """Raise the soft limit to the hard one; many systems start with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
