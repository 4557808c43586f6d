"""Alert thresholds and targets, from ``AUTOPOST_ALERT_*``. An empty threshold switches its condition off.

The targets also serve notices to owners of publications.

A target is configured by its first variable: ``AUTOPOST_ALERT_TELEGRAM_TOKEN``, ``…_WEBHOOK_URL``, ``…_SMTP_HOST``.
"""

import base64
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from autopost_runtime.config.env_values import Named, is_host
from autopost_runtime.config.load import ConfigError, HttpUrl, Secret, ServiceConfig
from autopost_runtime.fetch.addresses import WEB_PORTS, Networks, Ports
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
MoreThan = Annotated[int, Meta(ge=0)]
Duration = Annotated[timedelta, Meta(ge=0.05)]
Port = Annotated[int, Meta(ge=1, le=65535)]

SIGNING_PREFIX = "whsec_"
SHORTEST_KEY = 24


class AlertConfig(ServiceConfig, frozen=True, kw_only=True):
    telegram_api_url: HttpUrl = "https://api.telegram.org"
    ca_bundle: Path | None = None

    alert_interval: Duration = timedelta(seconds=15)
    alert_window: Duration = timedelta(minutes=5)
    """How long a condition must be false before its alert is resolved."""
    alert_remind: Duration = timedelta(hours=4)
    alert_notify: Duration = timedelta(seconds=2)
    """How often each target is checked for due notices."""
    alert_retry: Duration = timedelta(seconds=2)
    """The first wait after a target failed; it doubles up to 150 times this."""
    alert_timeout: Annotated[timedelta, Meta(ge=0.1, le=60)] = timedelta(seconds=10)

    alert_dead: Annotated[Count, Named("ALERT_DEAD_THRESHOLD")] | None = 1
    alert_failed_permanent: Annotated[MoreThan, Named("ALERT_FAILED_PERM_10M")] | None = 20
    """Alert above this number within ten minutes."""
    alert_paused_channels: MoreThan | None = 10
    alert_paused_share: Annotated[float, Meta(ge=0, le=1)] | None = 0.2
    """Also alert when more than this part of the channels of a workspace is paused."""
    alert_disabled_channels: Count | None = 1
    """Channels that were disabled after failures."""
    alert_held: Count | None = 1
    """Deliveries that perhaps were sent and wait for an operator."""
    alert_cooled_groups: Count | None = 1
    alert_open_circuits: Count | None = 1
    alert_oldest_due: Duration | None = timedelta(minutes=15)
    alert_pull_failures: Count | None = 5
    """Consecutive failures of one source."""
    alert_staged_age: Duration | None = timedelta(minutes=15)
    stuck_staged_deadline: Duration = timedelta(hours=6)
    """A post older than this counts as stuck even while a worker has it: for the alert and the gauge."""
    alert_bot_age: Duration | None = timedelta(minutes=5)
    alert_bot_errors: MoreThan | None = 10
    """Alert above this number within ten minutes."""
    alert_bot_actions_expired: MoreThan | None = 5
    """Alert above this number within an hour."""
    alert_bot_inbox: Duration | None = timedelta(minutes=1)
    """How long an update of a customer may be unanswered."""
    alert_bot_fallback: Annotated[float, Meta(ge=0, le=1)] | None = 0.5
    """Alert above this share of messages within an hour that match no rule, of twenty messages or more."""
    alert_bot_adapter: Count | None = 5
    """Consecutive replies that failed for good with the same code."""
    alert_bot_webhook: Duration | None = timedelta(hours=1)
    """How long no update came, while the platform does not send them to the webhook of the bot."""
    alert_publications_failed: Count | None = 1
    alert_publications_paused: Count | None = 1
    alert_publications_late: Duration | None = timedelta(minutes=5)
    """How long a publication is due and not sent."""
    alert_set_aside: Count | None = 3
    """Consecutive failures of one kind of work in one workspace."""
    alert_provider_wait: Duration | None = timedelta(hours=1)
    """A platform asked for a longer wait than this for a rate group or a channel."""
    alert_orphan_events: Count | None = 1
    alert_relay_lag: Duration | None = timedelta(minutes=1)
    alert_refused_claims: Duration | None = timedelta(minutes=1)
    """How long claims failed to get the lock of a workspace with due work."""
    alert_partitions_ahead: Duration | None = timedelta(days=14)
    """An alert is raised if event partitions exist for less than this."""

    snapshot_policy: Literal["off", "schedule", "on_alert"] = "off"
    snapshot_every: Duration = timedelta(days=1)

    alert_telegram_token: Secret | None = None
    alert_telegram_chat: str | None = None
    alert_telegram_thread: int | None = None
    alert_webhook_url: Secret | None = None
    """A secret: many services keep theirs in the path."""
    alert_webhook_secret: Secret | None = None
    """``whsec_`` and base64, as in Standard Webhooks; without it requests are not signed."""
    alert_smtp_host: str | None = None
    alert_smtp_port: Port = 587
    alert_smtp_tls: Literal["starttls", "tls", "off"] = "starttls"
    alert_smtp_user: str | None = None
    alert_smtp_password: Secret | None = None
    alert_smtp_from: str | None = None
    alert_smtp_to: str | None = None
    """One address or several, with commas."""

    owner_webhook_secret: Secret | None = None
    """``whsec_`` and base64: signs notices to owners of publications, who are given it; else they are unsigned."""
    fetch_allow: Networks = ()
    """Internal networks that a notice to an owner may reach, on every port; all other addresses must be public."""
    fetch_deny: Networks = ()
    """Networks that no notice to an owner may reach, whatever else is allowed."""
    fetch_ports: Ports = WEB_PORTS

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise ConfigError(problems)

    def _problems(self) -> Iterator[str]:
        yield from _together("TELEGRAM_TOKEN", self.alert_telegram_token, "TELEGRAM_CHAT", self.alert_telegram_chat)
        yield from _together("SMTP_USER", self.alert_smtp_user, "SMTP_PASSWORD", self.alert_smtp_password)
        yield from _together("SMTP_HOST", self.alert_smtp_host, "SMTP_FROM", self.alert_smtp_from)
        yield from _together("SMTP_HOST", self.alert_smtp_host, "SMTP_TO", self.alert_smtp_to)
        if self.alert_smtp_host and not is_host(self.alert_smtp_host):
            yield "AUTOPOST_ALERT_SMTP_HOST: expected a host name like mail.example.org"
        if self.alert_smtp_user and self.alert_smtp_tls == "off":
            yield "AUTOPOST_ALERT_SMTP_TLS is off, but a password must be sent encrypted; set it to starttls or tls"
        if self.alert_webhook_url and not _is_web_address(self.alert_webhook_url.reveal()):
            yield "AUTOPOST_ALERT_WEBHOOK_URL: expected a URL like https://host/path"
        if self.alert_webhook_secret and not signing_key(self.alert_webhook_secret):
            yield f"AUTOPOST_ALERT_WEBHOOK_SECRET: expected {SIGNING_PREFIX} and base64 of {SHORTEST_KEY} bytes or more"
        if self.owner_webhook_secret and not signing_key(self.owner_webhook_secret):
            yield f"AUTOPOST_OWNER_WEBHOOK_SECRET: expected {SIGNING_PREFIX} and base64 of {SHORTEST_KEY} bytes or more"


def signing_key(secret: Secret) -> bytes | None:
    """``None`` when the secret is not a valid key."""
    text = secret.reveal()
    try:
        key = base64.b64decode(text.removeprefix(SIGNING_PREFIX), validate=True)
    except ValueError:
        return None
    return key if text.startswith(SIGNING_PREFIX) and len(key) >= SHORTEST_KEY else None


def _together(one: str, value: object, other: str, needed: object) -> Iterator[str]:
    for missing, given, is_missing in ((other, one, value and not needed), (one, other, needed and not value)):
        if is_missing:
            yield f"AUTOPOST_ALERT_{missing} is not set, but AUTOPOST_ALERT_{given} needs it"


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and is_host(parts.hostname or "") and parts.port != 0
    except ValueError:
        return False
