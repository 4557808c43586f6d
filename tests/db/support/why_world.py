"""A workspace in which everything that can hold a delivery holds some, by chance; and the hands that release it."""

import json
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import asyncpg
from db.support.builders import Tenant, permanent, sent, transient
from db.support.operators import Operator

LIVE = ("queued", "retry", "claimed", "sending")
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ALWAYS = {day: [["00:00", "00:00"]] for day in DAYS}
WHY = "SELECT * FROM why_delivery($1, $2, $3)"


class World:
    """``now`` is the clock of the test: it only goes forward, and ``tick`` keeps it from falling behind the database's.

    What functions and triggers write is of the database's time, and not yet there on a clock that is behind.
    """

    def __init__(self, tenant: Tenant, now: datetime) -> None:
        self.tenant = tenant
        self.now = now
        self.operator = Operator(tenant)

    async def tick(self) -> None:
        self.now = max(self.now, await self.tenant.db.fetchval("SELECT clock_timestamp()"))

    async def live(self) -> list[UUID]:
        return [row["delivery_id"] for row in await self.tenant.deliveries() if row["status"] in LIVE]

    async def why(self, *deliveries: UUID) -> dict[UUID, asyncpg.Record]:
        rows = await self.tenant.db.fetch(WHY, self.tenant.workspace, list(deliveries), self.now)
        told = {row["delivery_id"]: row for row in rows}
        assert len(told) == len(rows), "a delivery has one gate"
        return told

    async def claim(self) -> list[asyncpg.Record]:
        return await self.tenant.claim(1000, now=self.now)

    async def release(self, told: asyncpg.Record) -> None:
        """What the answer says would open the gate, and nothing else."""
        command, ws = told["command"], self.tenant.workspace
        match told["released_by"], (command or "").split():
            case "operator", ["UPDATE", *_]:
                await self.tenant.db.execute(command)
            case "operator", ["autopost", "workspace", "resume", *_]:
                assert await self.operator.turn_workspace("active") == "turned"
            case "operator", ["autopost", "channel", "resume", channel, *_]:
                assert (await self.operator.resume(UUID(channel)))[UUID(channel)] in ("resumed", "still_disabled")
            case "operator", ["autopost", "channel", "enable", channel, *_]:
                assert await self.operator.enable(UUID(channel)) == {UUID(channel): "enabled"}
            case "operator", ["autopost", "queue", "resolve", delivery, "resend", *_]:
                assert await self.operator.resolve(UUID(delivery), "resend") == "resent"
            case "time", []:
                self.now = told["until"]
            case "platform", []:
                await self.tenant.db.execute(
                    "UPDATE platform_limits g SET circuit = 'closed', opened_at = NULL, probe_at = NULL, trial = NULL, "
                    "stalled_until = NULL FROM channels c WHERE c.workspace_id = g.workspace_id "
                    "AND c.platform = g.platform AND c.rate_group = g.rate_group AND c.channel_id = $1",
                    told["channel_id"],
                )
            case "settings", []:
                await self.tenant.set_channel(told["channel_id"], "window_mode = 'immediate'")
            case "monitor", ["autopost", "queue", "release", *_]:
                await self.tenant.recover(now=self.now)
                await self.tenant.db.execute("SELECT recover_claimed_leases($1, $2)", ws, self.now)
            case "commit", [] if told["status"] == "claimed":
                self.now = told["until"] + SECOND
            case "commit", []:
                await self.end_one_send(told)
            case other:
                raise AssertionError(f"nobody knows how to release {told['gate']}: {other}")

    async def end_one_send(self, told: asyncpg.Record) -> None:
        """The delivery's own, or one that takes the last place of its channel."""
        mine = told["gate"] == "lease"
        query = """
            SELECT * FROM deliveries
            WHERE workspace_id = $1 AND status = 'sending' AND CASE WHEN $2 THEN delivery_id ELSE channel_id END = $3
            LIMIT 1"""
        subject = told["delivery_id"] if mine else told["channel_id"]
        claim = await self.tenant.db.fetchrow(query, self.tenant.workspace, mine, subject)
        assert claim is not None
        await self.tenant.commit(sent(claim))


async def make_world(tenant: Tenant, seed: int) -> World:
    dice = Random(seed)
    world = World(tenant, await tenant.db.fetchval("SELECT clock_timestamp()"))
    for group in ("one", "two"):
        await tenant.group(dice.choice([None, 0.5, 5]), group)
    channels = [
        await tenant.channel(
            rate_group=dice.choice(["one", "two"]),
            rate_rps=dice.choice([None, 0.2, 2]),
            max_parallel=dice.choice([1, 2, 5]),
            on_ambiguous=dice.choice(["resend", "hold"]),
        )
        for _ in range(5)
    ]
    for channel in channels:
        await tenant.backlog(channel, dice.randrange(1, 7))
    for _ in range(3):
        await _some_traffic(world, dice)
        world.now += dice.choice([SECOND / 100, SECOND, 3 * SECOND])
        await world.tick()
    await _some_times(world, dice)
    for channel in channels:
        await _some_gates(world, dice, channel)
    for group in ("one", "two"):
        await _some_outage(world, dice, group)
    status = ("active", "active", "paused", "active", "active", "disabled")[seed % 6]
    await tenant.db.execute("UPDATE workspaces SET status = $2 WHERE workspace_id = $1", tenant.workspace, status)
    await world.tick()
    return world


async def _some_traffic(world: World, dice: Random) -> None:
    for claim in await world.claim():
        match dice.randrange(10):
            case 0:
                await world.tenant.commit(sent(claim))
            case 1:
                await world.tenant.commit(permanent(claim, dice.choice(["delivery", "channel", "platform"])))
            case 2:
                await world.tenant.commit(transient(claim, "platform", retry_after_ms=dice.choice([2000, 90000])))
            case 3:
                await world.tenant.commit(transient(claim, "channel", retry_after_ms=4000))
            case 4 | 5:
                await world.tenant.commit(transient(claim, ambiguous=True))
            case 6:
                await world.tenant.set_delivery(
                    claim["delivery_id"], "sending_lease_until = $3", world.now - dice.choice([SECOND, HOUR])
                )
            case _:
                pass  # still being sent


async def _some_times(world: World, dice: Random) -> None:
    """Schedules, hand-made claims, and retries that are far, near or over."""
    for row in await world.tenant.deliveries():
        later = world.now + dice.choice([-1, 0.001, 5, 3000]) * SECOND
        if row["status"] in ("queued", "retry") and dice.random() < 0.2:
            await world.tenant.set_delivery(row["delivery_id"], "scheduled_for = $3", later)
        if row["status"] == "retry" and row["hold_reason"] is None and dice.random() < 0.5:
            await world.tenant.set_delivery(row["delivery_id"], "next_retry_at = $3", later)
        if row["status"] == "queued" and dice.random() < 0.1:
            await world.tenant.set_delivery(
                row["delivery_id"],
                "status = 'claimed', claim_token = gen_random_uuid(), claimed_at = $3",
                world.now - dice.choice([10, 1000]) * SECOND,
            )


async def _some_gates(world: World, dice: Random, channel: UUID) -> None:
    if dice.random() < 0.15:
        await world.operator.disable(channel)
    if dice.random() < 0.2:
        await world.operator.pause(channel, **{"for": dice.choice([None, HOUR, 24 * HOUR])})
    if dice.random() < 0.25:
        today = world.now.astimezone(UTC).date()
        closed = [str(today + timedelta(days=day)) for day in range(-1, dice.randrange(1, 4))]
        window = dice.choice([{**ALWAYS, "holidays": closed}, ALWAYS, {}])
        await world.tenant.set_channel(channel, "window_mode = 'windowed', posting_window = $3", json.dumps(window))


async def _some_outage(world: World, dice: Random, group: str) -> None:
    columns = {
        0: "circuit = 'open', opened_at = now(), probe_at = now() + interval '1 minute'",
        1: "circuit = 'half', opened_at = now(), probe_at = now()",
        2: "stalled_until = now() + interval '5 seconds'",
    }.get(dice.randrange(9))
    if columns:
        await world.tenant.db.execute(
            f"UPDATE platform_limits SET {columns}, failed_deliveries = '{{}}' "
            "WHERE workspace_id = $1 AND rate_group = $2",
            *(world.tenant.workspace, group),
        )
