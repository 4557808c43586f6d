"""A bot belongs to one workspace: where the binding does not name it, it is found out before the first call."""

import asyncio
import json
from datetime import timedelta

import pytest
from autopost_contracts.outcomes import Category, Failed, Scope, Sent
from autopost_contracts.plan import Plan, TextPart
from autopost_dispatcher.send.end_delivery import Released
from autopost_runtime.config.load import Secret
from db.support.builders import Tenant
from dispatcher.support.fakes import FakeDatabase, FakePlatform, sender
from dispatcher.support.running_dispatcher import RunningDispatchers, configured, running_dispatcher
from harness.databases import Database
from harness.eventually import eventually


async def test_a_bot_that_the_binding_does_not_name_is_asked_for_once_and_stored() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    world.bot_id, world.is_sealed = None, False
    sending = sender(platform, world)

    outcomes = await asyncio.gather(*(sending.deliver(world.job()) for _ in range(20)))

    assert {type(outcome) for outcome in outcomes} == {Sent}
    assert (platform.identified, set(world.learnt)) == (1, {"77"})
    assert world.slots_taken == [True]  # beside the chat


async def test_the_bot_of_a_sealed_token_is_not_asked_for() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")

    await sender(platform, world).deliver(world.job())

    assert (platform.identified, world.learnt) == (0, [])


async def test_of_a_variable_or_a_file_the_binding_is_checked_once_per_token() -> None:
    """They may hold another token by now."""
    platform, world = FakePlatform(), FakeDatabase("one")
    world.is_sealed = False
    sending = sender(platform, world)

    await sending.deliver(world.job())
    await sending.deliver(world.job())
    same = (platform.identified, list(world.learnt))
    platform.bot_id, world.secret = "78", Secret("token of another bot")
    await sending.deliver(world.job())

    assert same == (1, [])
    assert (platform.identified, world.learnt) == (2, ["78"])


async def test_a_token_that_was_replaced_by_one_of_another_workspaces_bot_sends_nothing() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    platform.bot_id, world.is_sealed, world.taken = "78", False, True

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Released)
    assert platform.sent == []


async def test_a_token_that_names_its_bot_costs_no_slot() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    platform.identifies_by_call, world.bot_id, world.is_sealed = False, None, False

    await sender(platform, world).deliver(world.job())

    assert (world.learnt, world.slots_taken) == (["77"], [])


@pytest.mark.parametrize(
    ("code", "category", "scope"),
    [("unauthorized", Category.PERMANENT, Scope.CHANNEL), ("not_found", Category.TRANSIENT, Scope.DELIVERY)],
)
async def test_only_a_refused_token_is_held_against_the_channel(code: str, category: Category, scope: Scope) -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    world.bot_id, world.is_sealed = None, False
    platform.unidentified = Failed.permanent(Scope.CHANNEL, code)

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Failed)
    assert (outcome.category, outcome.scope, outcome.code) == (category, scope, code)
    assert platform.sent == []


async def test_with_the_bot_of_another_workspace_nothing_is_sent() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    world.bot_id, world.is_sealed, world.taken = None, False, True

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Released)
    assert platform.sent == []


async def test_while_the_database_cannot_say_whose_bot_it_is_nothing_is_sent() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    world.bot_id, world.is_sealed, world.away = None, False, 1
    sending = sender(platform, world)

    first, second = await sending.deliver(world.job()), await sending.deliver(world.job())

    assert (type(first), type(second)) == (Released, Sent)
    assert len(platform.sent) == 1


@pytest.mark.parametrize("said", [None, "5"])
@pytest.mark.parametrize("platform", ["telegram", "max"])
async def test_of_two_workspaces_with_one_token_the_second_is_paused_and_told_why(
    stage: RunningDispatchers, database: Database, platform: str, said: str | None
) -> None:
    """Both bindings are places that only the services can read, whatever bot the second one names."""
    await stage.channels(platform, 1)
    other = RunningDispatchers(await Tenant.create(database.pool), stage.simulator, stage._http, stage.bucket)
    plan = Plan(version=2, platform=platform, parts=(TextPart(text="hello"),))

    async with running_dispatcher(configured(database.url, stage.simulator)):
        await stage.enqueue(plan)
        assert await stage.settled() == {"sent": 1}
        await other.channels(platform, 2)
        query = "UPDATE credential_bindings SET bot_id = $2 WHERE workspace_id = $1"
        await other.tenant.db.execute(query, other.tenant.workspace, said)
        await other.enqueue(plan)
        await eventually(lambda: _paused(other.tenant, 2), within=timedelta(seconds=30))

    first, *_ = await stage.tenant.db.fetch(
        "SELECT bot_id FROM credential_bindings WHERE workspace_id = $1", stage.tenant.workspace
    )
    told = await other.tenant.events("channel_paused")
    [channel, _] = await other.tenant.db.fetch(
        "SELECT channel_id FROM channels WHERE workspace_id = $1 ORDER BY target_id", other.tenant.workspace
    )
    why = await other.tenant.db.fetchrow(
        "SELECT * FROM why_channel($1, ARRAY[$2::uuid])", other.tenant.workspace, channel["channel_id"]
    )
    assert first["bot_id"] is not None
    assert len(await stage.accepted()) == 1
    assert {json.loads(event["error"])["code"] for event in told} == {"bot_taken"}
    assert why is not None
    assert (why["gate"], why["until"], json.loads(why["cause"])["code"]) == ("channel_paused", None, "bot_taken")
    assert (await other.statuses()).keys() <= {"queued", "retry"}


async def _paused(tenant: Tenant, count: int) -> bool:
    rows = await tenant.db.fetch("SELECT paused_until FROM channels WHERE workspace_id = $1", tenant.workspace)
    return [row["paused_until"] is not None for row in rows] == [True] * count
