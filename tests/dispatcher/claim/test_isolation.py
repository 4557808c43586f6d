"""One tenant's row, one odd answer, one malformed wakeup: the dispatcher goes on, and all others are served."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import nats
import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.plan import Plan, TextPart
from autopost_contracts.subjects import Topology
from autopost_dispatcher.claim.schedule import ClaimSchedule
from autopost_dispatcher.dispatch import workspace_of
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.nats.bus import ensure_streams, open_bus
from db.support.builders import Tenant
from dispatcher.support.running_dispatcher import TOKENS, RunningDispatchers, configured, running_dispatcher
from harness.databases import Database
from harness.eventually import eventually
from harness.odd_answers import ODD_ANSWERS, odd_max

TEXT = Plan(version=2, platform="max", parts=(TextPart(text="hello"),))
TWO = Plan(version=2, platform="max", parts=(TextPart(text="one"), TextPart(text="two")))
DAY = timedelta(days=1)


async def _second(stage: RunningDispatchers) -> RunningDispatchers:
    """Another tenant on the same stage."""
    return RunningDispatchers(await Tenant.create(stage.tenant.db), stage.simulator, stage._http, stage.bucket)


async def _break(database: Database, tenant: Tenant, table: str, when: str) -> None:
    """Something about this tenant's rows makes every write to the table fail."""
    await database.pool.execute(
        f"CREATE FUNCTION trip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.workspace_id = '{tenant.workspace}' {when} THEN RAISE numeric_value_out_of_range; END IF; "
        f"RETURN NEW; END $$; "
        f"CREATE TRIGGER trip BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION trip()"
    )


async def test_a_workspace_whose_claim_fails_is_set_aside_named_and_taken_up_again(
    stage: RunningDispatchers, database: Database
) -> None:
    other = await _second(stage)
    await stage.channels("telegram", 1)
    await other.channels("max", 2)
    await stage.enqueue(TEXT)
    [delivery] = await stage.deliveries()
    await _break(database, stage.tenant, "workspace_due", "")

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)) as service:
        await eventually(lambda: database.pool.fetchval("SELECT count(*) FROM set_aside WHERE failures >= 2"))
        await other.enqueue(TEXT, TEXT)
        served = await other.settled()
        why = await database.pool.fetchrow(
            "SELECT gate, cause FROM why_delivery($1, $2)", stage.tenant.workspace, [delivery]
        )
        alerts = await database.pool.fetch("SELECT workspace_id, condition FROM evaluate_alerts('{\"set_aside\": 2}')")
        await database.pool.execute("DROP TRIGGER trip ON workspace_due")
        repaired = await stage.settled()
        await eventually(lambda: _has_no_rows(database, "set_aside"))
        is_running = not service.stopping.is_set()

    assert served == {"sent": 4}
    assert why is not None
    assert (why["gate"], '"work": "claim"' in why["cause"]) == ("set_aside", True)
    assert [tuple(row) for row in alerts] == [(stage.tenant.workspace, "set_aside")]
    assert (repaired, is_running, service.exit_code) == ({"sent": 1}, True, 0)


async def test_an_outcome_that_cannot_be_committed_is_kept_and_everybody_elses_is_recorded(
    stage: RunningDispatchers, database: Database
) -> None:
    """It was accepted: nobody sends it again, and once it can be recorded it is."""
    other = await _second(stage)
    await stage.channels("telegram", 3)
    await other.channels("max", 2)
    await stage.enqueue(TEXT)
    await other.enqueue(TEXT)
    [odd, *_] = await stage.deliveries()
    await _break(database, stage.tenant, "deliveries", f"AND NEW.status = 'sent' AND NEW.delivery_id = '{odd}'")

    lease = {"sending_lease": timedelta(seconds=3), "provider_timeout": timedelta(seconds=1)}
    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket, **lease)) as service:
        await eventually(lambda: database.pool.fetchval("SELECT count(*) FROM set_aside WHERE failures >= 3"))
        meanwhile = (await other.settled(), await stage.statuses())
        recovered = await database.pool.fetchval("SELECT recover_sending_leases($1)", stage.tenant.workspace)
        await database.pool.execute("DROP TRIGGER trip ON deliveries")
        settled = await stage.settled()
        is_running = not service.stopping.is_set()

    assert meanwhile == ({"sent": 2}, {"sent": 2, "sending": 1})
    assert recovered == 0  # its lease is renewed
    assert (settled, is_running) == ({"sent": 3}, True)
    assert len(await stage.accepted()) == 5


async def _has_no_rows(database: Database, table: str) -> bool:
    return await database.pool.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_a_time_that_python_has_no_date_for_stops_no_poll(stage: RunningDispatchers, database: Database) -> None:
    other = await _second(stage)
    await stage.channels("telegram", 1)
    await other.channels("max", 1)
    await stage.enqueue(TEXT)
    await database.pool.execute(
        "UPDATE platform_limits SET next_allowed_at = '99999-01-01' WHERE workspace_id = $1", stage.tenant.workspace
    )
    await other.enqueue(TEXT)

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)) as service:
        served = await other.settled()

    assert (served, service.exit_code) == ({"sent": 1}, 0)
    assert await stage.statuses() == {"queued": 1}


ENDS = {
    "a NUL in the id": "sent",
    "a lone surrogate in the id": "sent",
    "an endless id": "sent",
    "an endless number": "sent",
    "a wait of 2e13 seconds": "retry",
    "a wait of nine digits": "retry",
    "900 KB of words": "failed_permanent",
    "NULs in words": "failed_permanent",
    "lists for words": "failed_permanent",
    "a deep answer": "retry",
}


@pytest.mark.parametrize("plan", [TEXT, TWO], ids=["one part", "two parts"])
async def test_an_odd_answer_is_recorded_and_takes_nobody_along(
    stage: RunningDispatchers, database: Database, plan: Plan
) -> None:
    """All of them at once, each to a channel whose rate group is its own: a wait of one is no wait of the others."""
    other = await _second(stage)
    await other.channels("max", 3, rate_group="other")
    await database.pool.execute("UPDATE channels SET target_id = 'x' || target_id")
    query = "UPDATE credential_bindings SET secret_ref = 'env:ANOTHER' WHERE workspace_id = $1"
    await database.pool.execute(query, other.tenant.workspace)
    sound, *chats = await stage.channels("max", 1 + len(ODD_ANSWERS))
    query = "UPDATE channels SET rate_group = target_id WHERE workspace_id = $1"
    await database.pool.execute(query, stage.tenant.workspace)
    answers = dict(zip(chats, ODD_ANSWERS.values(), strict=True))
    await stage.enqueue(plan)
    await other.enqueue(plan)

    async with (
        odd_max(answers, TOKENS["max"]) as url,
        running_dispatcher(configured(database.url, url)) as service,
    ):
        served = await other.settled()
        found = await eventually(lambda: _ended(database, stage.tenant))
        exit_code = service.exit_code

    assert (served, exit_code) == ({"sent": 3}, 0)
    assert found.pop(sound)["status"] == "sent"
    assert dict(zip(ODD_ANSWERS, (found[chat]["status"] for chat in chats), strict=True)) == ENDS
    assert await _has_no_rows(database, "set_aside")
    assert all(
        row["next_retry_at"] is None or row["next_retry_at"] <= datetime.now(UTC) + DAY for row in found.values()
    )
    for chat, answer in answers.items():
        if "Retry-After" in answer.headers:
            asked = min(int(answer.headers["Retry-After"]) * 1000, 10**15)
            assert f'"retry_after_ms": {asked}' in found[chat]["last_error"]
            assert found[chat]["next_retry_at"] > datetime.now(UTC) + DAY * 0.9


async def _ended(database: Database, tenant: Tenant) -> dict[str, Any] | None:
    """By chat, once none is under way."""
    rows = await database.pool.fetch(
        "SELECT c.target_id, d.* FROM deliveries d JOIN channels c USING (workspace_id, channel_id) "
        "WHERE d.workspace_id = $1",
        tenant.workspace,
    )
    under_way = any(row["status"] in ("queued", "sending") for row in rows)
    return None if under_way else {row["target_id"]: row for row in rows}


async def test_a_malformed_wakeup_keeps_no_other_from_being_heard(nats_url: str, nats_namespace: str) -> None:
    topology, schedule = Topology(nats_namespace), ClaimSchedule()
    await ensure_streams(nats_url, topology)
    config = ServiceConfig(
        database_url="postgresql://nobody@127.0.0.1:1/none", nats_url=nats_url, nats_namespace=nats_namespace
    )
    workspace = WorkspaceId(uuid4())
    client = await nats.connect(nats_url)
    try:
        async with open_bus(config, "test") as bus:
            hearing = asyncio.create_task(
                bus.wakeups(topology.dispatcher_wakeups, lambda subject: schedule.wake(workspace_of(subject)))
            )
            for token in ("nobody", "0", "drop table", "ы", uuid4().hex[:-1]):
                subject = topology.subject(f"wakeup.dispatch.{token.replace(' ', '_')}")
                await client.publish(subject, b"\x00\xff not what anybody meant")
            for status in ("nonsense", "", "100", "404", "408", "409", "503", "9" * 5000):  # as only the server answers
                await client.publish(topology.wakeup_dispatch(WorkspaceId(uuid4())), b"", headers={"Status": status})
            await client.publish(topology.wakeup_dispatch(workspace), b"{" * 1000)
            async with asyncio.timeout(20):
                while (heard := await schedule.next()) != workspace:  # a status may also be taken for a wakeup
                    pass
            is_hearing = not hearing.done()
    finally:
        await client.close()
    await asyncio.wait([hearing], timeout=5)

    assert (heard, is_hearing) == (workspace, True)


async def test_a_row_that_somebody_holds_keeps_no_other_tenant_from_being_served(
    stage: RunningDispatchers, database: Database
) -> None:
    """An open transaction on a delivery that is under way: its parts and its end wait, those of the others do not."""
    other = await _second(stage)
    await stage.channels("telegram", 1)
    await other.channels("max", 3)
    await stage.enqueue(TWO)
    [held] = await stage.deliveries()
    await stage.control("faults", {"platform": "telegram", "times": 1, "effect": {"delay": 0.5}})

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)) as service:
        await eventually(lambda: _is_sending(stage))
        connection = await database.connect()
        async with connection.transaction():
            await connection.execute(
                "SELECT 1 FROM deliveries WHERE workspace_id = $1 AND delivery_id = $2 FOR UPDATE",
                *(stage.tenant.workspace, held),
            )
            await eventually(lambda: _waits_for_a_lock(database))
            for _ in range(3):
                await other.enqueue(TWO)
            served = await other.settled(within=timedelta(seconds=4))
        settled = await stage.settled()
        is_running = not service.stopping.is_set()

    assert (served, settled, is_running) == ({"sent": 9}, {"sent": 1}, True)
    assert len(await stage.accepted()) == 20


async def _is_sending(stage: RunningDispatchers) -> bool:
    return "sending" in await stage.statuses()


async def _waits_for_a_lock(database: Database) -> bool:
    return bool(await database.pool.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
