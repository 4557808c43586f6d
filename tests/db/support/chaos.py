"""Whatever services and operators call, at random, from several connections at once."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from db.support.builders import Tenant, permanent, released, sent, transient
from db.support.by_hand import REQUEUE_DEAD, REQUEUE_FAILED
from db.support.operators import SIGNED

TAGS = "abcdef"
ENDINGS: list[Callable[[Any], dict[str, Any]]] = [
    sent,
    transient,
    released,
    permanent,
    lambda claim: transient(claim, ambiguous=True),
    lambda claim: transient(claim, "platform", retry_after_ms=1),
    lambda claim: transient(claim, "channel", retry_after_ms=1),
    lambda claim: permanent(claim, "channel"),
    lambda claim: permanent(claim, "channel", code="unauthorized"),
]
GIVEN_UP = "SELECT delivery_id FROM dead_letters WHERE workspace_id = $1 LIMIT 20"
HELD = "SELECT delivery_id FROM deliveries WHERE workspace_id = $1 AND hold_reason IS NOT NULL LIMIT 5"


@dataclass
class Shared:
    """What all actors have in common: anybody may end what another has claimed, and two may end the same."""

    channels: list[UUID]
    claims: list[Any] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)


class Chaos:
    """One connection of it."""

    def __init__(self, tenant: Tenant, shared: Shared, chance: random.Random) -> None:
        self.tenant = tenant
        self.shared = shared
        self.chance = chance

    async def run(self, calls: int) -> None:
        acts: list[Callable[[], Awaitable[None]]] = [self.claim] * 5 + [self.arrive] * 5 + [self.commit] * 4
        acts += [self.batch] * 3 + [self.enable, self.progress, self.renew] * 2
        acts += [self.recover, self.pause, self.pause_group, self.resume, self.disable, self.requeue, self.skip]
        acts += [self.release, self.resolve, self.rotate, self.recount, self.change, self.requeue_by_hand]
        while self.shared.calls.total() < calls:
            act = self.chance.choice(acts)
            await act()
            self.shared.calls[act.__name__] += 1

    async def call(self, query: str, *values: Any) -> list[Any]:
        return [row[0] for row in await self.tenant.db.fetch(query, self.tenant.workspace, *values)]

    def channel(self) -> UUID:
        return self.chance.choice(self.shared.channels)

    def take(self, most: int) -> list[Any]:
        """In any order; now and then others keep them too."""
        self.chance.shuffle(self.shared.claims)
        taken = self.shared.claims[: self.chance.randint(1, most)]
        if self.chance.random() < 0.85:
            del self.shared.claims[: len(taken)]
        return taken

    async def batch(self) -> None:
        posts = [
            await self.tenant.post(f"text {self.chance.randrange(400)}", tags=self.chance.sample(TAGS, 2))
            for _ in range(self.chance.randint(1, 4))
        ]
        await self.tenant.put_batch(posts)

    async def claim(self) -> None:
        self.shared.claims += await self.tenant.claim(self.chance.randint(1, 40))

    async def arrive(self) -> None:
        await self.tenant.commit_sent(*map(sent, self.take(15)))

    async def commit(self) -> None:
        endings = [self.chance.choice(ENDINGS)(claim) for claim in self.take(15)]
        pause = timedelta(milliseconds=self.chance.randint(0, 20))
        await self.tenant.commit(*endings, short=False, jitter=0, pause=pause)

    async def recover(self) -> None:
        await self.call("SELECT recover_sending_leases($1, clock_timestamp() + interval '1 hour', 5)")

    async def pause(self) -> None:
        query = "SELECT channel_id FROM pause_channels($1, $2, NULL, $3, $4, interval '20 ms')"
        await self.call(query, self.channel(), *SIGNED)

    async def pause_group(self) -> None:
        await self.call("SELECT channel_id FROM pause_channels($1, NULL, 'bot', $2, $3, interval '5 ms')", *SIGNED)

    async def enable(self) -> None:
        await self.call("SELECT channel_id FROM enable_channels($1, NULL, 'bot', $2, $3)", *SIGNED)

    async def resume(self) -> None:
        await self.call("SELECT channel_id FROM resume_channels($1, $2, NULL, $3, $4)", self.channel(), *SIGNED)

    async def disable(self) -> None:
        await self.call("SELECT channel_id FROM disable_channels($1, $2, NULL, $3, $4)", self.channel(), *SIGNED)

    async def requeue(self) -> None:
        await self.call("SELECT verdict FROM requeue($1, $2, $3, $4)", await self.shuffled(GIVEN_UP), *SIGNED)

    async def requeue_by_hand(self) -> None:
        statement = self.chance.choice([REQUEUE_DEAD, REQUEUE_FAILED])
        await self.tenant.db.execute(statement, self.tenant.workspace, await self.shuffled(GIVEN_UP))

    async def skip(self) -> None:
        await self.call("SELECT verdict FROM skip($1, $2, $3, $4)", await self.shuffled(GIVEN_UP), *SIGNED)

    async def release(self) -> None:
        force = self.chance.random() < 0.2
        await self.call("SELECT verdict FROM release_stale($1, $2, $3, $4)", *SIGNED, force)

    async def resolve(self) -> None:
        decision = self.chance.choice(["sent", "resend"])
        for delivery in (await self.shuffled(HELD))[:1]:
            await self.call("SELECT resolve_ambiguous($1, $2, $3, $4, $5)", delivery, decision, *SIGNED)

    async def rotate(self) -> None:
        auth_ref, group = f"bot {self.chance.randrange(4)}", self.chance.choice([None, "bot", "other"])
        query = "SELECT rotate_auth($1, $2, $3, $4, $5, $6, true)"
        await self.call(query, self.channel(), auth_ref, group, *SIGNED)

    async def recount(self) -> None:
        await self.call("SELECT * FROM recount($1)")

    async def change(self) -> None:
        await self.tenant.set_channel(self.channel(), "max_parallel = 1 + max_parallel % 3")

    async def progress(self) -> None:
        for claim in self.take(1):
            fence = claim["delivery_id"], claim["claim_token"]
            await self.call("SELECT record_progress($1, $2, $3, 0, ARRAY['1'])", *fence)
            await self.call("SELECT * FROM take_slot($1, $2, $3)", *fence)
            self.shared.claims.append(claim)

    async def renew(self) -> None:
        claims = self.shared.claims[:30]
        self.chance.shuffle(claims)
        fences = [claim["delivery_id"] for claim in claims], [claim["claim_token"] for claim in claims]
        await self.call("SELECT renew_leases($1, $2, $3)", *fences)

    async def shuffled(self, query: str) -> list[UUID]:
        found = await self.call(query)
        self.chance.shuffle(found)
        return found
