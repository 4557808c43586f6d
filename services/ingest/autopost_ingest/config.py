"""What ingest reads from ``AUTOPOST_*``."""

from datetime import timedelta
from typing import Annotated

from autopost_runtime.config import ServiceConfig
from msgspec import Meta


class IngestConfig(ServiceConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_ingest"
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    body_timeout: Annotated[timedelta, Meta(ge=0.1, le=60)] = timedelta(seconds=10)
    audit_deduped: bool = False
    """Also keep a row for each delivery that dedup suppressed; the event is always written."""
