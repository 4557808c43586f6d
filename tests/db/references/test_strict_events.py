"""Strict mode: the log refuses what it otherwise only finds, the queue works on, and it can be taken back."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from autopost_cli.schema import schema_files
from db.retain.test_retention import forget
from db.support.ages import age
from db.support.builders import Tenant, sent, transient
from db.support.operators import Operator

REFERENCES = ["delivery_id", "message_id", "channel_id"]


async def turn(tenant: Tenant, way: str) -> None:
    await tenant.db.execute(schema_files.statement(f"strict/{way}"))


async def speak_of(tenant: Tenant, column: str, at: datetime | None = None) -> Any:
    query = f"INSERT INTO events (workspace_id, {column}, action, ts) VALUES ($1, $2, 'enqueue', $3)"
    return await tenant.db.execute(query, tenant.workspace, uuid4(), at or datetime.now(UTC))


@pytest.mark.parametrize("column", REFERENCES)
async def test_an_event_of_something_that_is_not_there_is_refused_until_it_is_taken_back(
    tenant: Tenant, column: str
) -> None:
    await turn(tenant, "on")

    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await speak_of(tenant, column)

    await turn(tenant, "off")
    await speak_of(tenant, column)


async def test_a_partition_that_is_made_later_is_strict_too(tenant: Tenant) -> None:
    await turn(tenant, "on")
    await tenant.db.execute("SELECT ensure_event_partitions('300 days')")

    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await speak_of(tenant, "delivery_id", datetime.now(UTC) + timedelta(days=290))


async def test_a_log_that_has_such_events_stays_as_it_is(tenant: Tenant) -> None:
    await speak_of(tenant, "delivery_id")

    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await turn(tenant, "on")

    assert not await tenant.db.fetchval("SELECT events_are_strict()")


async def test_the_queue_works_on_and_nothing_that_an_event_speaks_of_is_forgotten(tenant: Tenant) -> None:
    await turn(tenant, "on")
    channel = await tenant.channel()
    await tenant.enqueue("hello", tags=["a"])
    await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=0))
    await tenant.commit(sent(await tenant.claim_one()))
    await tenant.enqueue("hello", tags=["b"])
    await Operator(tenant).pause(channel)
    await Operator(tenant).resume(channel)
    await age(tenant.db, timedelta(days=100))

    assert [await forget(tenant, what) for what in ("deliveries", "messages")] == [0, 0]

    await turn(tenant, "off")
    assert [await forget(tenant, what) for what in ("deliveries", "messages")] == [1, 1]
