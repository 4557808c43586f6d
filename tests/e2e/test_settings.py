"""A setting that is read and passed on to nobody has no effect: here the running services do as they were told."""

from datetime import timedelta
from uuid import UUID

from autopost_cli.development import WORKSPACE
from harness.eventually import eventually

from e2e.conftest import StartSystem
from e2e.system import System

PLENTY = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
KICKED = {"status": 403, "description": "Forbidden: bot was kicked from the channel chat"}


async def only(system: System, title: str) -> None:
    await system.database.execute("UPDATE channels SET enabled = title = $1, paused_until = NULL", title)


async def settled(system: System, expected: dict[str, int]) -> None:
    async def is_so() -> bool:
        return await system.statuses() == expected

    await eventually(is_so, within=PLENTY)


async def test_the_services_do_as_they_were_told(start_system: StartSystem) -> None:
    system = await start_system(
        AUTOPOST_AUDIT_DEDUPED="true",
        AUTOPOST_MAX_ATTEMPTS="4",
        AUTOPOST_BACKOFF_BASE="3s",
        AUTOPOST_BACKOFF_CAP="7m",
        AUTOPOST_GROUP_COOLDOWN="8s",
        AUTOPOST_DISPATCHER_LIMIT_PER_WORKSPACE="3",
        AUTOPOST_SENDING_LEASE="200s",
        AUTOPOST_PAUSE_ON_PERMANENT="7m",
        AUTOPOST_DISABLE_AFTER_PERMANENT_STREAK="2",
    )
    for table in ("channels", "platform_limits"):  # rates would make claims small
        await system.database.execute(f"UPDATE {table} SET rate_rps = NULL")
    policy = tuple(
        await system.database.fetchrow(
            "SELECT max_attempts, backoff_base, backoff_cap, group_cooldown FROM current_policy()"
        )
    )

    await system.post(text="hello", source_ref="1")
    await settled(system, {"sent": 40})
    await system.post(text="hello", source_ref="2")
    twins = await system.statuses()
    largest = await system.database.fetchval(
        "SELECT max(n) FROM (SELECT count(*) AS n FROM events WHERE action = 'send_attempt' GROUP BY xid) AS claims"
    )

    assert tuple(policy) == (4, 3 * SECOND, 420 * SECOND, 8 * SECOND)
    assert twins == {"sent": 40, "deduped": 40}
    assert largest == 3

    await only(system, "Demo Telegram 1")
    await system.control("faults", {"name": "kicked", "effect": KICKED | {"delay": 1}})
    await system.post(text="first refused")

    async def lease() -> timedelta | None:
        found: timedelta | None = await system.database.fetchval(
            "SELECT sending_lease_until - sending_started_at FROM deliveries WHERE status = 'sending'"
        )
        return found

    async def is_sending() -> bool:
        return await lease() is not None

    await eventually(is_sending, within=PLENTY)
    leased = await lease()
    await settled(system, twins | {"failed_permanent": 1})
    paused = await system.database.fetchval(
        "SELECT c.paused_until - e.ts FROM channels c JOIN events e USING (workspace_id, channel_id) "
        "WHERE e.action = 'channel_paused' AND c.workspace_id = $1",
        UUID(WORKSPACE),
    )
    await only(system, "Demo Telegram 1")
    await system.post(text="then refused again")
    await settled(system, twins | {"failed_permanent": 2})

    assert leased is not None
    assert abs(leased - 200 * SECOND) < 5 * SECOND
    assert abs(paused - 420 * SECOND) < 5 * SECOND
    assert not await system.database.fetchval("SELECT enabled FROM channels WHERE title = 'Demo Telegram 1'")
