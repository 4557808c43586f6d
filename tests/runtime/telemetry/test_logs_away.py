"""A log that cannot be written ends no service: each begins, works and stops as ever. For ingest see its own tests."""

from datetime import timedelta
from pathlib import Path

import pytest
from harness.databases import Database
from harness.eventually import eventually
from runtime.postgres.test_schema import running

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("service", ["dispatcher", "monitor", "bot"])
async def test_a_service_whose_log_is_full_is_ready_and_stops(database: Database, tmp_path: Path, service: str) -> None:
    (tmp_path / service).symlink_to("/dev/full")

    async with running(service, database.url, tmp_path) as process:

        async def is_ready() -> bool:
            return set((await process.checks()).values()) == {"ok"}

        await eventually(is_ready, within=MINUTE)
