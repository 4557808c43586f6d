"""The configuration of the dispatcher, from ``AUTOPOST_*``."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from autopost_runtime.config.env_values import show_duration
from autopost_runtime.config.load import ConfigError, HttpUrl, ServiceConfig
from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]
Duration = Annotated[timedelta, Meta(ge=0.01)]
Wait = Annotated[timedelta, Meta(ge=0.01, le=86400)]

LEASE_ALWAYS_LEFT = 0.75
"""The fraction of a lease that is left at any time while it is renewed, see ``claim.lease``."""


class DispatcherConfig(ServiceConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_dispatcher"
    command_timeout: Duration = timedelta(seconds=15)
    """Longer than a ten-second stall of the process: a claim whose answer is not read keeps its lease unused."""
    telegram_api_url: HttpUrl = "https://api.telegram.org"
    max_api_url: HttpUrl = "https://platform-api2.max.ru"
    ca_bundle: Path | None = None
    """Additional certificate authorities for provider calls; few systems have the root of MAX's certificate."""
    dispatcher_limit_per_workspace: Positive = 1000
    """Deliveries per claim. A claim costs as much as a hundred deliveries, so a backlog needs large claims."""
    concurrency: Positive = 1000
    """Deliveries that this process sends at once. One more claim may wait, and as many outcomes for their commit."""
    sending_lease: Duration = timedelta(seconds=300)
    provider_timeout: Duration = timedelta(seconds=30)
    upload_timeout: Duration | None = None
    """For calls with media; by default 0.6 of the lease."""
    max_attempts: Annotated[int, Meta(ge=1, le=100)] = 5
    """Per delivery, unless its channel sets a number. This and the next three are the retry policy of the whole
    installation, see ``adopt_policy``."""
    backoff_base: Wait = timedelta(seconds=2)
    backoff_cap: Wait = timedelta(minutes=10)
    group_cooldown: Wait = timedelta(seconds=60)
    """The cooldown of a rate group after a permanent failure of the platform without retry_after."""
    probe_base: Wait = timedelta(seconds=2)
    """The wait before the first probe of a platform that does not answer; it doubles up to ``probe_cap``. These two
    belong to the policy of the installation as well."""
    probe_cap: Wait = timedelta(seconds=60)
    probe_timeout: Duration = timedelta(seconds=5)
    stall_after: Duration = timedelta(seconds=5)
    """A rate group whose oldest call has no answer for so long gets no more deliveries until it has."""
    pause_on_permanent: Duration = timedelta(hours=1)
    disable_after_permanent_streak: Positive = 3
    call_drain: Duration = timedelta(seconds=8)
    """How long a stop waits for calls in flight; unanswered calls then end as ambiguous."""
    drain_timeout: Annotated[timedelta, Meta(ge=0, le=60)] = timedelta(seconds=9.5)

    def __post_init__(self) -> None:
        """A call must end well within the lease, or another worker gets the delivery."""
        most = self.sending_lease * LEASE_ALWAYS_LEFT - self.margin
        for name, limit in (("PROVIDER_TIMEOUT", self.provider_timeout), ("UPLOAD_TIMEOUT", self.time_to_upload)):
            if limit > most:
                lease = f"AUTOPOST_SENDING_LEASE is {show_duration(self.sending_lease)}"
                raise ConfigError(
                    [f"AUTOPOST_{name} is {show_duration(limit)}: must be at most {show_duration(most)}, since {lease}"]
                )

    @property
    def time_to_upload(self) -> timedelta:
        return self.upload_timeout or self.sending_lease * 0.6

    @property
    def margin(self) -> timedelta:
        """Time of a lease that is left after the longest call."""
        return min(timedelta(seconds=1), self.sending_lease * 0.1)
