"""In a workspace full of troubles every live delivery has one gate, the claim agrees, and opening the gate moves it."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import pytest
from db.support.builders import Tenant, sent
from db.support.why_world import World, make_world
from harness.databases import Database
from harness.full import FULL

SEEDS = range(24 if FULL else 12)
RESTARTS = {"lease", "queued_behind"}
"""Releasing these changes the delivery itself, or others in its way: what holds it then may be any gate."""


@asynccontextmanager
async def undone(world: World) -> AsyncIterator[None]:
    """Whatever is tried inside has not happened."""
    now, trial = world.now, world.tenant.db.transaction()  # type: ignore[union-attr]
    await trial.start()
    try:
        yield
    finally:
        await trial.rollback()
        world.now = now


async def order_of(world: World) -> list[str]:
    order: list[str] = await world.tenant.db.fetchval("SELECT why_precedence()")
    return order


@pytest.fixture(params=SEEDS, ids="seed {}".format)
async def world(request: pytest.FixtureRequest, database: Database, tenant: Tenant) -> AsyncIterator[World]:
    made = await make_world(tenant.on(await database.connect()), request.param)
    yield made
    tenant.now = made.now


async def test_every_live_delivery_has_one_gate_and_a_claim_takes_only_what_is_in_line(world: World) -> None:
    order = await order_of(world)
    live = await world.live()

    told = await world.why(*live)

    assert set(told) == set(live)
    assert {row["gate"] for row in told.values()} <= set(order)
    async with undone(world):
        claimed = {claim["delivery_id"] for claim in await world.claim()}
        await assert_agrees(told, claimed)


async def assert_agrees(told: dict[UUID, asyncpg.Record], claimed: set[UUID]) -> None:
    """Taken from the head of their lines; and where somebody is in line, somebody is taken."""
    in_line = {delivery: row for delivery, row in told.items() if row["gate"] == "queued_behind"}
    assert claimed <= set(in_line)
    assert bool(claimed) == bool(in_line)
    places: dict[UUID, set[int]] = {}
    for delivery in claimed:
        cause = in_line[delivery]["cause"]
        places.setdefault(in_line[delivery]["channel_id"], set()).add(behind(cause))
    assert all(taken == set(range(len(taken))) for taken in places.values()), places


def behind(cause: str) -> int:
    return int(json.loads(cause)["behind"])


async def test_opening_the_gate_that_is_named_moves_every_delivery_until_a_claim_takes_it(world: World) -> None:
    order = await order_of(world)

    for delivery in await world.live():
        async with undone(world):
            await follow(world, delivery, order)


async def follow(world: World, delivery: UUID, order: list[str]) -> None:
    """Each gate that is opened is gone and gives way to a later one, and at the end the delivery is claimed or sent."""
    last = -1
    seen: Counter[str] = Counter()
    while told := (await world.why(delivery)).get(delivery):
        gate = told["gate"]
        seen[gate] += 1
        assert seen[gate] < 30, (gate, seen)
        assert order.index(gate) > last, f"{gate} after {order[last]}: {seen}"
        last = -1 if gate in RESTARTS else order.index(gate)
        if gate == "queued_behind":
            if await claimed_or_nearer(world, delivery):
                return
        else:
            await release(world, told)
        await world.tick()


async def release(world: World, told: asyncpg.Record) -> None:
    """While a gate is named, no claim takes it."""
    async with undone(world):
        assert told["delivery_id"] not in {claim["delivery_id"] for claim in await world.claim()}
    await world.release(told)


async def claimed_or_nearer(world: World, delivery: UUID) -> bool:
    """One round of a dispatcher; it sends what it gets."""
    claims = await world.claim()
    if delivery in {claim["delivery_id"] for claim in claims}:
        return True
    assert claims, "somebody is in line, and nobody is taken"
    await world.tenant.commit(*(sent(claim) for claim in claims))
    return False


async def test_the_worlds_hold_deliveries_by_every_gate(database: Database) -> None:
    """Else the tests above would not say much."""
    met: Counter[str] = Counter()
    order: list[str] = []
    for seed in range(24):
        tenant = await Tenant.create(database.pool)
        world = await make_world(tenant, seed)
        order = await order_of(world)
        for row in (await world.why(*await world.live())).values():
            met[row["gate"]] += 1

    no_claim_asks = {"staged_media", "claim_blocked", "set_aside"}  # of the last two only dispatchers know
    assert set(met) == set(order) - no_claim_asks, met
