"""What the dispatcher reads from ``AUTOPOST_*``."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from autopost_runtime.config import ConfigError, HttpUrl, ServiceConfig
from autopost_runtime.values import show_duration
from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]
Duration = Annotated[timedelta, Meta(ge=0.01)]

SURELY_LEFT = 0.75
"""Of a lease: what is left at any time while it is renewed, see ``lease``."""


class DispatcherConfig(ServiceConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_dispatcher"
    command_timeout: Duration = timedelta(seconds=15)
    """A process that was held up for ten seconds still reads its answers: a claim without one is leased to nobody."""
    telegram_api_url: HttpUrl = "https://api.telegram.org"
    max_api_url: HttpUrl = "https://platform-api2.max.ru"
    ca_bundle: Path | None = None
    """More certificate authorities for provider calls; MAX's chain ends in one that few systems know."""
    dispatcher_limit_per_workspace: Positive = 1000
    """Deliveries per claim. A claim's own cost is that of a hundred deliveries, so a backlog goes in large bites."""
    concurrency: Positive = 1000
    """Deliveries that this process sends at once. A claim more may wait for that, and as many again to be committed."""
    claimers: Annotated[int, Meta(ge=1, le=32)] = 2
    sending_lease: Duration = timedelta(seconds=300)
    provider_timeout: Duration = timedelta(seconds=30)
    upload_timeout: Duration | None = None
    """For a call that carries media; if not set, six tenths of the lease."""
    pause_on_permanent: Duration = timedelta(hours=1)
    disable_after_permanent_streak: Positive = 3
    call_drain: Duration = timedelta(seconds=8)
    """How long a stop waits for calls in flight; what is unanswered then ends as ambiguous."""
    drain_timeout: Annotated[timedelta, Meta(ge=0, le=60)] = timedelta(seconds=9.5)

    def __post_init__(self) -> None:
        """A call must end well inside a lease: the database gives the delivery to somebody else when it is over."""
        most = self.sending_lease * SURELY_LEFT - self.margin
        for name, limit in (("PROVIDER_TIMEOUT", self.provider_timeout), ("UPLOAD_TIMEOUT", self.time_to_upload)):
            if limit > most:
                shown = f"{show_duration(limit)}, AUTOPOST_SENDING_LEASE is {show_duration(self.sending_lease)}"
                raise ConfigError(
                    [f"AUTOPOST_{name} is {shown}: expected at most {show_duration(most)} with this lease"]
                )

    @property
    def time_to_upload(self) -> timedelta:
        return self.upload_timeout or self.sending_lease * 0.6

    @property
    def margin(self) -> timedelta:
        """Of a lease, kept beyond the longest that a call may take."""
        return min(timedelta(seconds=1), self.sending_lease * 0.1)
