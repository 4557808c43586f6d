"""After any traffic, and in the middle of it, verify finds nothing: whatever happened was told as it happened."""

import asyncio
import random
from datetime import timedelta
from uuid import UUID

import asyncpg
from db.support.builders import Tenant, permanent, released, running, sent, transient
from db.support.consistency import anonymous
from db.support.operators import Operator
from db.support.verified import differences
from harness.full import FULL

SEEDS = range(12 if FULL else 4)
STEPS = 120
HAPPENED = {
    "enqueue",
    "validation_failed",
    "dedup_suppressed",
    "send_attempt",
    "sent",
    "retry_scheduled",
    "failed_permanent",
    "dead_letter",
    "held",
    "sending_lease_expired",
    "claimed_lease_expired",
    "catch_up_dropped",
    "manual_requeue",
    "manual_skip",
    "stale_commit",
}


class Traffic:
    """One step after the other, each by the function that a service or an operator calls."""

    def __init__(self, tenant: Tenant, chance: random.Random) -> None:
        self.tenant = tenant
        self.operator = Operator(tenant)
        self.chance = chance
        self.channels: list[UUID] = []
        self.claims: list[asyncpg.Record] = []

    async def set_up(self) -> None:
        policies = [{"policy": "all"}, {"policy": "newest", "keep": 1}]
        for ambiguous in ("resend", "hold", "hold"):
            self.channels.append(
                await self.tenant.channel(on_ambiguous=ambiguous, catch_up=self.chance.choice(policies), max_parallel=3)
            )

    async def step(self) -> None:
        steps = [self.enqueue] * 5 + [self.claim] * 6 + [self.commit] * 6 + [self.recover, self.claim_by_hand]
        steps += [self.requeue, self.skip, self.close, self.open, self.open, self.release, self.resolve, self.refuse]
        await self.chance.choice(steps)()

    async def enqueue(self) -> None:
        text = f"text {self.chance.randrange(8)}"
        calls, attempts = self.chance.randint(1, 2), self.chance.randint(1, 3)
        await self.tenant.enqueue(text, calls=calls, max_attempts=attempts, audit_deduped=self.chance.random() < 0.5)

    async def refuse(self) -> None:
        post = await self.tenant.post()
        hashes = [one["profile_hash"] for one in post["renderings"]]
        post["renderings"] = [{"profile_hash": one, "problems": ["too long"]} for one in hashes]
        await self.tenant.put(post)

    async def claim(self) -> None:
        lease = timedelta(seconds=self.chance.choice([300, 300, 0]))
        self.claims += await self.tenant.claim(self.chance.randint(1, 5), lease=lease)

    async def commit(self) -> None:
        chosen = [claim for claim in self.claims if self.chance.random() < 0.7]
        await self.tenant.commit(*(self.ending(claim) for claim in chosen))

    def ending(self, claim: asyncpg.Record) -> dict:
        return self.chance.choice(
            [
                lambda: sent(claim),
                lambda: sent(claim, provider_message_id=None),
                lambda: released(claim),
                lambda: transient(claim, retry_after_ms=0),
                lambda: transient(claim),
                lambda: transient(claim, ambiguous=True, retry_after_ms=0),
                lambda: permanent(claim),
            ]
        )()

    async def recover(self) -> None:
        await self.tenant.recover()

    async def claim_by_hand(self) -> None:
        waiting = [row["delivery_id"] for row in await self.tenant.deliveries() if row["status"] in ("queued", "retry")]
        for delivery in [one for one in waiting if not (await self.tenant.delivery(one))["hold_reason"]][:1]:
            await self.tenant.set_delivery(delivery, "status = 'claimed', claimed_at = now() - interval '1 hour'")
        if self.chance.random() < 0.7:
            await self.tenant.db.fetchval("SELECT recover_claimed_leases($1)", self.tenant.workspace)

    async def requeue(self) -> None:
        await self.operator.requeue(*await self.some("dead", "failed_permanent"), force=self.chance.random() < 0.5)

    async def skip(self) -> None:
        await self.operator.skip(*await self.some("dead"))

    async def close(self) -> None:
        channel = self.chance.choice(self.channels)
        await self.chance.choice([self.operator.pause, self.operator.disable])(channel)

    async def open(self) -> None:
        channel = self.chance.choice(self.channels)
        await self.chance.choice([self.operator.resume, self.operator.enable])(channel)

    async def release(self) -> None:
        await self.operator.release(force=self.chance.random() < 0.3)

    async def resolve(self) -> None:
        held = [row["delivery_id"] for row in await self.tenant.deliveries() if row["hold_reason"]]
        for delivery in held[:2]:
            found = self.chance.choice([None, "18"])
            await self.operator.resolve(delivery, self.chance.choice(["sent", "resend"]), found)

    async def some(self, *statuses: str) -> list[UUID]:
        rows = [row["delivery_id"] for row in await self.tenant.deliveries() if row["status"] in statuses]
        return self.chance.sample(rows, min(3, len(rows)))


async def test_after_random_traffic_every_delivery_is_what_its_events_say(database):
    happened: set[str] = set()
    for seed in SEEDS:
        tenant = await Tenant.create(database.pool)
        traffic = Traffic(tenant, random.Random(seed))
        await traffic.set_up()

        for step in range(STEPS):
            await traffic.step()
            if step % 40 == 39:
                assert await differences(database.pool, tenant.workspace) == [], f"seed {seed}, step {step}"

        assert await anonymous(database.pool, tenant.workspace) == []
        assert await orphans(tenant) == 0
        happened |= {row["what"] for row in await tenant.events()}
    assert happened >= HAPPENED


async def orphans(tenant: Tenant) -> int:
    query = "SELECT found FROM verify_events($1, '-infinity', $2, 100000)"
    found: int = await tenant.db.fetchval(query, tenant.workspace, UUID(int=0))
    return found


async def test_verify_in_the_middle_of_claims_and_commits_finds_nothing(database, tenant):
    await tenant.channels(4)
    looks = 0

    async def work(number: int) -> None:
        chance = random.Random(number)
        for _ in range(40):
            await tenant.enqueue(max_attempts=2)
            claims = await tenant.claim(5)
            await tenant.commit(
                *(chance.choice([sent, released, permanent])(claim) for claim in claims[:4]),
                *(transient(claim, retry_after_ms=0) for claim in claims[4:]),
            )

    workers = [running(work(number)) for number in range(3)]
    while not all(worker.done() for worker in workers):
        assert await differences(database.pool, tenant.workspace, chunk=20) == []
        looks += 1
    await asyncio.gather(*workers)

    assert looks > 1
    assert await differences(database.pool, tenant.workspace) == []
