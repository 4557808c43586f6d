"""Ingest in its own thread with a monitored event loop."""

from autopost_ingest.__main__ import work
from autopost_ingest.config import IngestConfig
from harness.watched_service import WatchedService


class Ingest(WatchedService):
    def __init__(self, config: IngestConfig) -> None:
        super().__init__("ingest", work, config)
