"""The settings of ``autopost up`` from the environment: external servers and fixed ports."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from autopost_runtime.config.load import ConfigError, HttpUrl, NatsAccess, NatsUrl, PostgresUrl, Secret, load

from autopost_cli.embedded.ports import free_port, is_free

EMBEDDED = "embedded"
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class UpSettings(NatsAccess, frozen=True, kw_only=True):
    """A server without a URL is embedded; ``AUTOPOST_NATS_URL=off`` means no NATS."""

    database_url: PostgresUrl | None = None
    nats_url: NatsUrl | None = EMBEDDED
    nats_namespace: str = "autopost"
    s3_endpoint: HttpUrl | None = None
    s3_bucket: str = "autopost"
    s3_access_key: Secret | None = None
    s3_secret_key: Secret | None = None
    telegram_api_url: HttpUrl | None = None
    max_api_url: HttpUrl | None = None
    postgres_port: Port | None = None
    nats_port: Port | None = None
    s3_port: Port | None = None
    simulator_port: Port | None = None
    ingest_port: Port | None = None
    bot_port: Port | None = None
    monitor_port: Port | None = None


def read_settings(env: Mapping[str, str]) -> UpSettings:
    """Raises ``ConfigError`` naming the variable."""
    return load(UpSettings, env)


class Ports:
    """Hands out each port once; a configured port that is in use is an error with the name of its variable."""

    def __init__(self, settings: UpSettings) -> None:
        self._settings = settings
        self._given: set[int] = set()

    def take(self, name: str) -> int:
        asked: int | None = getattr(self._settings, f"{name}_port", None)
        if asked is not None and (asked in self._given or not is_free(asked)):
            raise ConfigError(
                [f"AUTOPOST_{name.upper()}_PORT: port {asked} is in use; choose another, or unset it for a free one"]
            )
        port = asked or self._free()
        self._given.add(port)
        return port

    def _free(self) -> int:
        while (port := free_port()) in self._given:
            pass
        return port
