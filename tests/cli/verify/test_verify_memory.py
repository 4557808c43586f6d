"""`autopost verify` over much: it holds no more than over little, and shows how far it has come."""

import asyncio
import os
import pty
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import msgspec
import pytest
from db.support.bots import Bot
from db.support.builders import Tenant
from db.support.verified import tamper
from harness.databases import Database

pytestmark = pytest.mark.time_limit(480)

MUCH_MORE = 8_000
"""Kilobytes: half of what it takes to hold the ids of what is added below."""

MEASURED = """
import atexit, resource, sys
from pathlib import Path
atexit.register(lambda: Path(sys.argv[1]).write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)))
from autopost_cli.__main__ import main
main(sys.argv[2:])
"""


@pytest.fixture
async def shop(database: Database) -> Tenant:
    tenant = await Tenant.create(database.pool)
    await tenant.channel()
    await tenant.enqueue()
    return tenant


async def grow(tenant: Tenant) -> None:
    """Past every function: what does not add up has to be counted, and is listed no further than asked for."""
    await tamper(
        tenant.db,
        "INSERT INTO events (workspace_id, action) SELECT $1, 'checkpoint' FROM generate_series(1, 120000)",
        tenant.workspace,
    )
    await tamper(
        tenant.db,
        "INSERT INTO dead_letters (workspace_id, delivery_id, channel_id, status, given_up_at) "
        "SELECT workspace_id, gen_random_uuid(), channel_id, 'dead', now() FROM channels, generate_series(1, 20000)",
    )
    await (await Bot.create(tenant)).arrive()
    await tamper(tenant.db, TURNS, tenant.workspace)


TURNS = """
WITH lines AS (
    INSERT INTO bot_logs (workspace_id, ts, chat_id, message_text, state_before, state_after, meta)
    SELECT $1, now() + n * interval '1 ms', '7', 'hi', 'default', 'default',
           jsonb_build_object('key', n, 'ruleset', 'nobody knows it', 'outcome', 'matched')
    FROM generate_series(1, 20000) AS n
    RETURNING ts, meta ->> 'key' AS key
)
INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, ts, processed_at, provider_ts, update)
SELECT $1, 'max', '7', key, ts, ts, key::int, jsonb_build_object('text', repeat('long ', 200)) FROM lines
"""
"""20 MB of updates in one chat."""


async def peak(database: Database, file: Path) -> tuple[int, dict]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MEASURED, file, "verify", "--no-stream", "--json", "--database-url", database.url),
        stdout=PIPE,
    )
    out, _ = await process.communicate()
    return int(await asyncio.to_thread(file.read_text)), msgspec.json.decode(out)


async def test_much_takes_no_more_memory_than_little(database, shop, tmp_path):
    little, first = await peak(database, tmp_path / "little")
    await grow(shop)
    much, second = await peak(database, tmp_path / "much")

    assert second["checked"]["events"] == first["checked"]["events"] + 120_000
    assert second["checked"]["turns"] == 20_000
    assert (second["found"], len(second["differences"])) == (40_000, 100)
    assert much - little < MUCH_MORE


async def test_the_bar_of_each_walk_ends_where_the_walk_ends(database, shop):
    """Also when there are other workspaces, whose rows are not walked with it."""
    other = await Tenant.create(database.pool)
    await other.channels(3)
    for _ in range(5):
        await other.enqueue()
    await database.pool.execute("ANALYZE deliveries, events")
    reading, terminal = pty.openpty()

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "verify", "--no-stream", "--workspace", str(shop.workspace)),
        env=os.environ | {"AUTOPOST_DATABASE_URL": database.url},
        stdout=PIPE,
        stderr=terminal,
    )
    await process.communicate()
    os.close(terminal)
    shown = await asyncio.to_thread(everything, reading)

    assert process.returncode == 0
    for walk in ("deliveries", "queue rows", "events"):
        last = [line for line in re.split(r"[\r\n]+", shown) if walk in line][-1]
        assert "100%" in last, shown


def everything(reading: int) -> str:
    parts = []
    try:
        while part := os.read(reading, 4096):
            parts.append(part)
    except OSError:  # nobody writes any more
        pass
    os.close(reading)
    return b"".join(parts).decode()
