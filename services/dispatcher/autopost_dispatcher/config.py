"""What the dispatcher reads from ``AUTOPOST_*``."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from autopost_runtime.config import HttpUrl, ServiceConfig
from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]
Duration = Annotated[timedelta, Meta(ge=0.01)]


class DispatcherConfig(ServiceConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_dispatcher"
    telegram_api_url: HttpUrl = "https://api.telegram.org"
    max_api_url: HttpUrl = "https://platform-api2.max.ru"
    ca_bundle: Path | None = None
    """More certificate authorities for provider calls; MAX's chain ends in one that few systems know."""
    dispatcher_limit_per_workspace: Positive = 500
    """Deliveries per claim. A claim's own cost is that of dozens of deliveries, so a backlog goes in large bites."""
    concurrency: Positive = 1000
    """Deliveries that this process has claimed and not yet committed."""
    claimers: Annotated[int, Meta(ge=1, le=32)] = 2
    sending_lease: Duration = timedelta(seconds=300)
    provider_timeout: Duration = timedelta(seconds=30)
    pause_on_permanent: Duration = timedelta(hours=1)
    disable_after_permanent_streak: Positive = 3
    call_drain: Duration = timedelta(seconds=8)
    """How long a stop waits for calls in flight; what is unanswered then ends as ambiguous."""
    drain_timeout: Annotated[timedelta, Meta(ge=0, le=60)] = timedelta(seconds=9.5)
