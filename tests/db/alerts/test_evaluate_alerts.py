"""An alert is told once, reminds while it lasts, ends with a word, and waits for targets that are away."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from db.support.builders import Tenant
from db.support.operators import Operator, dead
from harness.databases import Database

WINDOW = timedelta(minutes=5)
REMIND = timedelta(hours=4)
CHAT, HOOK = "telegram", "webhook"


class Watch:
    """Judges as the monitor does; ``pass_time`` makes all alerts older instead of waiting."""

    def __init__(self, tenant: Tenant, *targets: str) -> None:
        self.tenant = tenant
        self.db = tenant.db
        self.targets = list(targets) or [CHAT]

    async def judge(self, db: Any = None, *, with_snapshot: bool = False, **thresholds: int) -> list[tuple[str, str]]:
        rows = await (db or self.db).fetch(
            "SELECT * FROM evaluate_alerts($1, $2, $3, $4, $5)",
            *(json.dumps(thresholds or {"dead": 1}), WINDOW, REMIND, self.targets, with_snapshot),
        )
        return [(row["condition"], row["kind"]) for row in rows]

    async def pass_time(self, time: timedelta) -> None:
        await self.db.execute(
            "UPDATE alerts SET opened_at = opened_at - $1::interval, seen_at = seen_at - $1::interval, "
            "since = since - $1::interval, reminded_at = reminded_at - $1::interval",
            time,
        )

    async def due(self, time: timedelta = timedelta(days=1)) -> None:
        """The next attempts of what waits are due now."""
        await self.db.execute("UPDATE alert_notices SET next_attempt_at = next_attempt_at - $1::interval", time)

    async def next(self, target: str = CHAT) -> Any:
        return await self.db.fetchrow("SELECT * FROM next_notice($1)", target)

    async def settle(self, notice: Any, outcome: str, target: str = CHAT, wait: timedelta | None = None) -> None:
        key = (notice["workspace_id"], notice["alert_id"], notice["step"], target)
        await self.db.execute("SELECT record_notice_result($1, $2, $3, $4, $5, $6, $7)", *key, outcome, "code", wait)

    async def next_attempt(self, notice: Any, wait: timedelta | None = None) -> tuple[timedelta, timedelta]:
        """Of a target that is away: how long it is left alone, at least and at most, as two looks at the clock tell."""
        began = await self.db.fetchval("SELECT clock_timestamp()")
        await self.settle(notice, "unreachable", wait=wait)
        row = await self.db.fetchrow("SELECT next_attempt_at, clock_timestamp() AS ended FROM alert_notices")
        return row["next_attempt_at"] - row["ended"], row["next_attempt_at"] - began

    async def heard(self, target: str = CHAT) -> list[tuple[str, str]]:
        """What the target takes when it takes everything, in order."""
        told = []
        while notice := await self.next(target):
            told.append((json.loads(notice["notice"])["condition"], notice["kind"]))
            await self.settle(notice, "delivered", target)
        return told

    async def waiting(self) -> list[tuple[str, str]]:
        rows = await self.db.fetch(
            "SELECT target, kind FROM alert_notices WHERE delivered_at IS NULL AND superseded_at IS NULL ORDER BY place"
        )
        return [tuple(row) for row in rows]


@pytest.fixture
def watch(tenant: Tenant) -> Watch:
    return Watch(tenant)


async def die(tenant: Tenant, count: int = 1) -> list[UUID]:
    return await dead(tenant, await tenant.channel(title="Lost"), count)


async def test_a_condition_opens_one_alert_however_often_it_is_found(tenant: Tenant, watch: Watch) -> None:
    await die(tenant, 2)

    assert [await watch.judge() for _ in range(3)] == [[("dead", "opened")], [], []]
    assert await watch.waiting() == [(CHAT, "opened")]


async def test_a_notice_says_what_how_many_since_when_where_and_why(tenant: Tenant, watch: Watch) -> None:
    [delivery, _] = await die(tenant, 2)
    await watch.judge()

    notice = json.loads((await watch.next())["notice"])

    assert (notice["kind"], notice["condition"], notice["count"], notice["threshold"]) == ("opened", "dead", 2, 1)
    assert (notice["workspace"], notice["workspace_id"]) == ("test", str(tenant.workspace))
    assert notice["causes"] == [{"name": "Lost", "code": "boom", "count": 2, "id": str(delivery)}]
    assert notice["since"] <= notice["opened_at"] <= notice["at"]


async def test_it_is_over_when_the_condition_was_not_found_for_a_window(
    tenant: Tenant, watch: Watch, operator: Operator
) -> None:
    [delivery] = await die(tenant)
    await watch.judge()
    await operator.skip(delivery)

    assert await watch.judge() == []
    await watch.pass_time(WINDOW - timedelta(seconds=30))
    assert await watch.judge() == []
    await watch.pass_time(timedelta(seconds=31))

    assert await watch.judge() == [("dead", "recovered")]
    assert await watch.judge() == []
    assert await watch.heard() == [("dead", "opened"), ("dead", "recovered")]


async def test_a_condition_that_comes_and_goes_within_a_window_is_one_alert(tenant: Tenant, watch: Watch) -> None:
    for _ in range(4):
        await watch.judge(dead=1 + await tenant.count("dead_letters"))  # gone
        await die(tenant)
        await watch.judge()
        await watch.pass_time(WINDOW / 2)

    assert await watch.heard() == [("dead", "opened")]
    assert await tenant.count("alerts") == 1


async def test_after_it_was_over_the_same_condition_is_another_alert(tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    await watch.judge()
    await watch.pass_time(WINDOW)
    await watch.judge(dead=9)

    assert await watch.judge() == [("dead", "opened")]
    assert await tenant.count("alerts") == 2


async def test_it_reminds_while_it_lasts_and_not_before(tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    await watch.judge()
    await watch.pass_time(REMIND - timedelta(minutes=1))
    assert await watch.judge() == []

    await watch.pass_time(timedelta(minutes=2))
    assert await watch.judge() == [("dead", "reminder")]
    assert await watch.judge() == []

    await watch.pass_time(REMIND)
    assert await watch.judge() == [("dead", "reminder")]


async def test_when_it_is_ten_times_as_bad_it_reminds_after_a_window_already(tenant: Tenant, watch: Watch) -> None:
    await die(tenant, 2)
    await watch.judge()
    await die(tenant, 17)
    await watch.pass_time(WINDOW)
    assert await watch.judge() == []

    await die(tenant, 1)

    assert await watch.judge() == [("dead", "reminder")]
    assert json.loads((await watch.next())["notice"])["count"] == 2


async def test_two_workspaces_and_two_conditions_are_four_alerts(database: Database, tenant: Tenant) -> None:
    watch = Watch(tenant)
    for one in (tenant, await Tenant.create(database.pool)):
        await die(one)
        await one.set_channel(await one.channel(), "paused_until = now() + interval '1 hour'")

    moved = await watch.judge(dead=1, paused_channels=0)

    assert sorted(moved) == [("dead", "opened")] * 2 + [("paused_channels", "opened")] * 2


async def test_of_two_that_judge_at_once_one_opens_the_alert(database: Database, tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    connections = [await database.connect() for _ in range(4)]

    moved = await asyncio.gather(*(watch.judge(connection) for connection in connections))

    assert [one for each in moved for one in each] == [("dead", "opened")]
    assert await watch.waiting() == [(CHAT, "opened")]


async def test_without_targets_an_alert_is_open_and_nobody_is_told(tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    watch.targets = []

    assert await watch.judge() == [("dead", "opened")]
    assert await watch.waiting() == []
    assert [tuple(row) for row in await tenant.db.fetch("SELECT * FROM count_alerts()")] == [("dead", 1)]


async def test_every_target_is_told_by_itself(tenant: Tenant) -> None:
    watch = Watch(tenant, CHAT, HOOK)
    await die(tenant)
    await watch.judge()

    await watch.settle(await watch.next(HOOK), "unreachable", HOOK)

    assert await watch.heard(CHAT) == [("dead", "opened")]
    assert await watch.heard(HOOK) == []
    await watch.due()
    assert await watch.heard(HOOK) == [("dead", "opened")]


async def test_while_a_target_is_away_everything_waits_behind_the_first(tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    await watch.judge()
    await watch.settle(await watch.next(), "unreachable")
    await tenant.set_channel(await tenant.channel(), "paused_until = now() + interval '1 hour'")
    await watch.judge(dead=1, paused_channels=0)
    await watch.pass_time(WINDOW)
    await watch.judge(dead=99, paused_channels=99)

    assert await watch.heard() == []
    await watch.due()

    told = await watch.heard()
    assert told[:2] == [("dead", "opened"), ("paused_channels", "opened")]
    assert sorted(told[2:]) == [("dead", "recovered"), ("paused_channels", "recovered")]


async def test_a_reminder_that_was_not_heard_is_replaced_and_nothing_else_is(tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    await watch.judge()
    for _ in range(3):
        await watch.pass_time(REMIND)
        await watch.judge()
    assert await watch.waiting() == [(CHAT, "opened"), (CHAT, "reminder")]

    await watch.pass_time(WINDOW)
    await watch.judge(dead=9)

    assert await watch.heard() == [("dead", "opened"), ("dead", "recovered")]


async def test_a_notice_that_is_refused_holds_up_no_other_alert(tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    await watch.judge()
    await watch.settle(await watch.next(), "refused")
    await tenant.set_channel(await tenant.channel(), "paused_until = now() + interval '1 hour'")
    await watch.judge(dead=1, paused_channels=0)
    await watch.pass_time(WINDOW)
    await watch.judge(dead=9, paused_channels=0)

    assert await watch.heard() == [("paused_channels", "opened")]
    await watch.due()
    assert await watch.heard() == [("dead", "opened"), ("dead", "recovered")]


async def test_each_failure_doubles_the_wait_up_to_a_limit(tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    await watch.judge()

    for wait in (2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300):
        earliest, latest = await watch.next_attempt(await watch.next())
        assert earliest <= timedelta(seconds=wait) <= latest
        await watch.due()


async def test_a_wait_that_a_target_asks_for_is_kept(tenant: Tenant, watch: Watch) -> None:
    await die(tenant)
    await watch.judge()

    earliest, latest = await watch.next_attempt(await watch.next(), wait=timedelta(seconds=90))

    assert earliest <= timedelta(seconds=90) <= latest


async def test_a_notice_has_the_queue_with_it_when_that_is_asked_for(tenant: Tenant, watch: Watch) -> None:
    await die(tenant, 2)
    await tenant.backlog(await tenant.channel(), 3)

    await watch.judge(with_snapshot=True)

    seen = json.loads((await watch.next())["notice"])["snapshot"]
    assert (seen["counts"]["dead"], seen["counts"]["queued"]) == (2, 3)
    assert seen["top_errors"] == [{"code": "boom", "count": 2}]


async def test_a_scheduled_snapshot_is_told_once_in_its_time(tenant: Tenant, watch: Watch) -> None:
    await tenant.backlog(await tenant.channel(), 3)
    tell = "SELECT send_snapshot($1, $2)"

    assert [await tenant.db.fetchval(tell, timedelta(days=1), [CHAT]) for _ in range(2)] == [True, False]
    notice = await watch.next()
    assert (notice["kind"], json.loads(notice["notice"])["snapshot"]["counts"]["queued"]) == ("snapshot", 3)
    await watch.pass_time(timedelta(days=1))

    assert await tenant.db.fetchval(tell, timedelta(days=1), [CHAT])
    assert await watch.waiting() == [(CHAT, "snapshot")]
    assert await tenant.db.fetchval("SELECT count(*) FROM count_alerts()") == 0


async def test_what_waits_for_a_target_that_is_gone_is_given_up_in_sight_and_forgotten(tenant: Tenant) -> None:
    watch = Watch(tenant, CHAT, HOOK)
    await die(tenant)
    await watch.judge()
    abandon = "SELECT * FROM abandon_notices($1, $2)"

    assert await tenant.db.fetch(abandon, [CHAT], REMIND) == []  # a replica that does not know it yet takes nothing
    assert [tuple(row) for row in await tenant.db.fetch(abandon, [CHAT], timedelta(0))] == [(HOOK, 1)]

    assert await watch.waiting() == [(CHAT, "opened")]
    assert await tenant.db.fetchval("SELECT last_error FROM alert_notices WHERE target = $1", HOOK) == "target_removed"
    await watch.heard()
    await tenant.db.execute("UPDATE alerts SET recovered_at = now() - interval '1 day'")
    assert await tenant.db.fetchval("SELECT retain_alerts($1, 10)", timedelta(hours=1)) == 1
