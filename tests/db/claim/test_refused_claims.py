"""A workspace whose claims never get their lock is told of, with the backend that holds it."""

import json
from datetime import timedelta
from typing import Any

import pytest
from db.support.builders import Tenant
from db.support.why_answers import ask_one
from harness.databases import Database
from harness.eventually import eventually

MINUTE = timedelta(minutes=1)


class Intruder:
    """A backend that has taken the key of a workspace, which any role can compute."""

    def __init__(self, connection: Any, tenant: Tenant) -> None:
        self.connection = connection
        self.tenant = tenant

    async def take(self) -> None:
        await self.connection.execute("SET application_name = 'intruder'")
        await self.connection.execute("SELECT pg_advisory_lock(claim_lock($1))", self.tenant.workspace)

    async def let_go(self) -> None:
        await self.connection.execute("SELECT pg_advisory_unlock_all()")

    @property
    def pid(self) -> int:
        return int(self.connection.get_server_pid())


@pytest.fixture
async def intruder(database: Database, tenant: Tenant) -> Intruder:
    return Intruder(await database.connect(), tenant)


async def alert(tenant: Tenant, seconds: float | None = 60) -> Any:
    query = "SELECT * FROM alert_conditions($1) WHERE condition = 'refused_claims'"
    return await tenant.db.fetchrow(query, json.dumps({"refused_claims": seconds}))


async def refuse(tenant: Tenant, ago: timedelta = timedelta()) -> None:
    """A claim is refused, the first one so long ago."""
    assert await tenant.claim() == []
    await tenant.db.execute("UPDATE claim_refusals SET since = since - $1::interval", ago)
    await tenant.db.execute(
        "UPDATE workspace_due SET last_claimed_at = last_claimed_at - $1::interval WHERE last_claimed_at > '-infinity'",
        ago,
    )


async def test_a_lock_that_no_claim_gets_for_a_minute_is_an_alert_that_names_its_holder(tenant, intruder):
    await tenant.backlog(await tenant.channel(), 1)
    await intruder.take()

    await refuse(tenant, ago=2 * MINUTE)

    told = await alert(tenant)
    [cause] = json.loads(told["causes"])
    assert (told["workspace_id"], told["found"]) == (tenant.workspace, 1)
    assert cause == {"name": f"lock held by postgres intruder pid {intruder.pid}", "code": "idle"}
    assert await alert(tenant, None) is None


async def test_claims_that_stand_in_each_others_way_are_no_alert(tenant, intruder):
    await tenant.backlog(await tenant.channel(), 2)
    await intruder.take()

    await refuse(tenant, ago=MINUTE / 2)

    assert await alert(tenant) is None


async def test_the_alert_is_over_when_a_claim_gets_in(tenant, intruder):
    await tenant.backlog(await tenant.channel(), 1)
    await intruder.take()
    await refuse(tenant, ago=2 * MINUTE)

    await intruder.let_go()
    assert len(await tenant.claim()) == 1

    assert await alert(tenant) is None


async def test_a_refusal_after_a_claim_that_got_in_counts_from_anew(tenant, intruder):
    await tenant.backlog(await tenant.channel(), 2)
    await intruder.take()
    await refuse(tenant, ago=2 * MINUTE)
    await intruder.let_go()
    await tenant.claim(1)
    await tenant.db.execute("UPDATE claim_refusals SET seen_at = seen_at - interval '2 seconds'")

    await intruder.take()
    await refuse(tenant)

    assert await alert(tenant, 30) is None


async def test_nobody_is_told_of_a_workspace_that_nobody_claims_in(tenant, intruder):
    await tenant.backlog(await tenant.channel(), 1)
    await intruder.take()
    await refuse(tenant, ago=2 * MINUTE)

    await tenant.db.execute("UPDATE claim_refusals SET seen_at = seen_at - interval '1 minute'")

    assert await alert(tenant) is None


async def test_where_nothing_is_due_nobody_misses_a_claim(tenant, intruder):
    await tenant.channel()
    await tenant.claim()
    await intruder.take()

    await refuse(tenant, ago=2 * MINUTE)

    assert await alert(tenant) is None


async def test_a_claim_that_gets_its_lock_notes_nothing(tenant):
    await tenant.backlog(await tenant.channel(), 1)

    assert len(await tenant.claim()) == 1

    assert await tenant.count("claim_refusals") == 0


async def test_refusals_are_noted_once_a_second(tenant, intruder):
    await intruder.take()
    await refuse(tenant)
    version = "SELECT xmin::text FROM claim_refusals"
    noted = await tenant.db.fetchval(version)

    await refuse_again(tenant)

    assert await tenant.db.fetchval(version) == noted


async def refuse_again(tenant: Tenant) -> None:
    for _ in range(5):
        assert await tenant.claim() == []


async def test_why_names_the_backend_that_keeps_claims_out(tenant, intruder):
    [delivery] = await tenant.backlog(await tenant.channel(), 1)
    await intruder.take()

    await refuse(tenant, ago=MINUTE / 2)

    gate = (await ask_one(tenant, delivery))["gate"]
    assert (gate["gate"], gate["released_by"]) == ("claim_blocked", "operator")
    assert gate["command"] == f"SELECT pg_terminate_backend({intruder.pid})"
    assert (gate["cause"]["pid"], gate["cause"]["application"]) == (intruder.pid, "intruder")

    await tenant.db.execute(gate["command"])

    async def claimed() -> bool:
        return bool(await tenant.claim())

    await eventually(claimed)  # the backend ends in its own time
    assert (await ask_one(tenant, delivery))["gate"]["gate"] == "lease"
