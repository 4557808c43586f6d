"""Several tenants as plain Python, alike in every id, and random histories that compare the database with them.

Whatever one call does in many workspaces must be what calls in each of them would have done: an id, a gate, a token of
one tenant means nothing in another.
"""

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from db.model.queue_model import SECOND, Violation, check_spacing, demand
from db.support.builders import LEASE, Tenant
from db.support.many_tenants import SAME_IDS, Claimed, tenants

TOLERANCE = timedelta(milliseconds=50)
CLAIM = "SELECT * FROM claim_due($1, $2, $3, $4, $5, p_now => $6)"
COMMIT = "SELECT * FROM commit_sent_across($1, $2, $3, $4, $5)"
SLOTS = "SELECT * FROM take_slots($1, $2, $3, $4, $5, p_now => $6)"
PROGRESS = "SELECT record_progress_across($1, $2, $3, $4, $5)"
RATES = (200.0, 27.0, 0.5)
STEPS = ("enqueue", "claim", "claim", "drain", "turns", "beside", "alone", "commit", "commit", "part", "wait", "wait")

Key = tuple[UUID, UUID]
"""Of a delivery or a channel: its workspace and its id."""


def step_of(rate: float) -> timedelta:
    return timedelta(microseconds=int(SECOND / rate))


@dataclass
class Row:
    channel: UUID
    status: str = "queued"
    token: UUID | None = None
    parts: int = 0


@dataclass
class Gate:
    step: timedelta
    opens: datetime | None = None
    slots: list[int] = field(default_factory=list)

    def base(self, now: datetime) -> datetime:
        return now if self.opens is None else max(self.opens, now - TOLERANCE)

    def room(self, now: datetime) -> int:
        base = self.base(now)
        return 0 if base > now else 1 + (now - base) // self.step

    def give(self, slot: datetime) -> None:
        self.slots.append(round(slot.timestamp() * SECOND))


class TenantsHistory:
    """Two connections; after every step all tables are compared."""

    def __init__(self, pool: Any, other: Any, seed: int) -> None:
        self.dice = random.Random(seed)
        self.pool = pool
        self.other = other
        self.rows: dict[Key, Row] = {}
        self.groups: dict[UUID, Gate] = {}
        self.channels: dict[Key, Gate] = {}
        self.places: dict[Key, int] = {}
        self.claims: list[dict[str, Any]] = []
        self.among: list[Tenant] = []
        self.ahead = timedelta()
        self.now: datetime

    async def run(self, steps: int) -> None:
        await self._set_up()
        for number in range(steps):
            kind = self.dice.choice(STEPS) if number else "enqueue"
            self.now = await self.pool.fetchval("SELECT clock_timestamp()") + self.ahead
            await getattr(self, f"_{kind}")()
            await self._compare(kind)

    async def _set_up(self) -> None:
        """A slow tenant may be beside a fast one; their groups have one name, their tokens do not."""
        self.among = await tenants(self.pool, self.dice.randint(2, 4))
        channels = [uuid4() for _ in range(self.dice.randint(1, 3))]
        for tenant in self.among:
            rate, own = self.dice.choice(RATES), str(tenant.workspace)
            await tenant.group(rate)
            self.groups[tenant.workspace] = Gate(step_of(rate))
            for number, channel in enumerate(channels):
                limit, places = self.dice.choice(RATES), self.dice.choice((1, 2, 10))
                columns = {"auth_ref": own, "target_id": f"{own} {number}", "rate_rps": limit, "max_parallel": places}
                await tenant.channel(channel_id=channel, **columns)
                self.channels[tenant.workspace, channel] = Gate(step_of(limit))
                self.places[tenant.workspace, channel] = places
        self.ids = channels

    async def _enqueue(self) -> None:
        """The same deliveries for some of them, or for all."""
        for _ in range(self.dice.randint(1, 8)):
            channel, delivery = self.dice.choice(self.ids), uuid4()
            for tenant in self._some():
                query = SAME_IDS.replace("content_hash, payload", "content_hash, payload", 1)
                await self.pool.execute(query.replace("'same'", f"'{delivery}'"), tenant.workspace, channel, delivery)
                self.rows[tenant.workspace, delivery] = Row(channel)

    async def _wait(self) -> None:
        self.ahead += timedelta(seconds=self.dice.choice((0.02, 0.06, 0.3, 3)))

    async def _claim(self) -> None:
        await self._claim_due(self._some(), self.dice.randint(1, 4), self.dice.randint(1, 6))

    async def _drain(self) -> None:
        """Until no more is given, and then nobody has been forgotten."""
        empty = 0
        while empty <= len(self.ids):  # a claim that looked at a full channel first gives nothing, and comes again
            empty = 0 if await self._claim_due(self.among, 3, 4) else empty + 1
        for tenant in self.among:
            left = self._available(tenant)
            demand(not left, "nobody starves", left, "could be claimed in", tenant.workspace)

    async def _turns(self) -> None:
        """When one call has room for a few only, nobody waits longer than it takes to look at each channel."""
        self.ahead += timedelta(seconds=10)
        self.now += timedelta(seconds=10)
        could = {one.workspace for one in self.among if self._available(one)}
        served = set()
        for _ in self.ids:
            served |= {row["workspace_id"] for row in await self._claim_due(self.among, 100, max(1, len(could)))}
        demand(could <= served, "the longest unserved first", could - served)

    async def _alone(self) -> None:
        tenant = self.dice.choice(self.among)
        rows = await tenant.claim(self.dice.randint(1, 4), now=self.now)
        self._take([row | {"workspace_id": tenant.workspace} for row in rows])

    async def _beside(self) -> None:
        """Another claim has some of the groups for now: those are left to it."""
        held = self._some()
        async with self.other.transaction():
            await self.other.execute(
                "SELECT 1 FROM platform_limits WHERE workspace_id = ANY ($1) FOR UPDATE",
                [one.workspace for one in held],
            )
            try:
                async with asyncio.timeout(5):
                    rows = await self._claim_due(self.among, 3, 10)
            except TimeoutError:
                raise Violation("a claim waits for no other", held) from None
        served = {row["workspace_id"] for row in rows} & {one.workspace for one in held}
        demand(not served, "a claim passes over what another one holds", served)

    async def _claim_due(self, among: list[Tenant], limit: int, most: int) -> list[dict[str, Any]]:
        ids = [one.workspace for one in among]
        claimed = Claimed(await self.pool.fetch(CLAIM, ids, uuid4(), limit, most, LEASE, self.now))
        counts = Counter(row["workspace_id"] for row in claimed.rows)
        demand(len(claimed.rows) <= most, "the room of a claim", most, counts)
        demand(max(counts.values(), default=0) <= limit, "the limit of a workspace", limit, counts)
        demand(counts.keys() <= set(ids), "only where it was asked", counts, ids)
        demand(claimed.workspaces.keys() == set(ids), "it says when to come again, of each", claimed.workspaces)
        self._take(claimed.rows)
        for row in claimed.rows:
            demand(row["plan"] == {"of": str(row["workspace_id"])}, "everybody's own text", row)
        return claimed.rows

    def _take(self, rows: list[dict[str, Any]]) -> None:
        """The rows come in the order of their slots: the n-th of a gate is n steps after the time it opened."""
        given: Counter[Key | UUID] = Counter()
        bases: dict[Key | UUID, datetime] = {}
        for row in rows:
            workspace, own = row["workspace_id"], str(row["workspace_id"])
            demand(row["auth_ref"] == own, "everybody's own token", row)
            demand(row["target_id"].startswith(own), "everybody's own chat", row)
            delivery = self.rows[workspace, row["delivery_id"]]
            demand(delivery.status == "queued", "each is claimed once", delivery, row)
            delivery.status, delivery.token = "sending", row["claim_token"]
            channel, group = self.channels[workspace, delivery.channel], self.groups[workspace]
            opened = [
                bases.setdefault(key, gate.base(self.now)) + given[key] * gate.step
                for key, gate in (((workspace, delivery.channel), channel), (workspace, group))
            ]
            demand(row["slot_at"] == max(opened) <= self.now, "everybody's own slot", row["slot_at"], opened, self.now)
            given.update([(workspace, delivery.channel), workspace])
            channel.opens, group.opens = row["slot_at"] + channel.step, opened[1] + group.step
            channel.give(row["slot_at"])
            group.give(row["slot_at"])
        self.claims += rows

    async def _commit(self) -> None:
        """Some of them with what another tenant was given: the id is known there, and means nothing."""
        self.dice.shuffle(self.claims)
        count = self.dice.randint(1, 4)
        batch, self.claims = self.claims[:count], self.claims[count:]
        if not batch:
            return
        wrong = [self.dice.random() < 0.2 for _ in batch]
        tokens = [uuid4() if bad else row["claim_token"] for bad, row in zip(wrong, batch, strict=True)]
        ids, deliveries = ([row[name] for row in batch] for name in ("workspace_id", "delivery_id"))
        row = await self.pool.fetchrow(COMMIT, ids, deliveries, tokens, [str(one) for one in ids], uuid4())
        demand(row["unsettled"] == [nth for nth, bad in enumerate(wrong, 1) if bad], "a fence", row, wrong)
        more = set()
        for bad, claim in zip(wrong, batch, strict=True):
            if bad:
                self.claims.append(claim)
                continue
            delivery = self.rows[claim["workspace_id"], claim["delivery_id"]]
            delivery.status, delivery.token = "sent", None
            more |= {claim["workspace_id"]} if self._waiting(claim["workspace_id"], delivery.channel) else set()
        demand(set(row["workspaces"] or ()) == more, "it says where there is more", row, more)

    async def _part(self) -> None:
        """A part was accepted, of several at once, and each wants its next slot."""
        batch = self.dice.sample(self.claims, min(len(self.claims), self.dice.randint(1, 4)))
        if not batch:
            return
        keys = [[row[name] for row in batch] for name in ("workspace_id", "delivery_id", "claim_token")]
        rows = [self.rows[row["workspace_id"], row["delivery_id"]] for row in batch]
        parts = [row.parts for row in rows]
        recorded = await self.pool.fetchval(PROGRESS, *keys, parts, json.dumps([["1"]] * len(batch)))
        demand(recorded == [True] * len(batch), "progress of the claim's own", recorded)
        for row in rows:
            row.parts += 1
        self.now += timedelta(seconds=1)
        self.ahead += timedelta(seconds=1)
        slots = await self.pool.fetch(SLOTS, *keys, [False] * len(batch), [None] * len(batch), self.now)
        demand([slot["nth"] for slot in slots] == [*range(1, len(batch) + 1)], "each gets an answer", slots)
        self._take_slots(batch, [row.channel for row in rows], slots)

    def _take_slots(self, batch: list[dict[str, Any]], ids: list[UUID], slots: list[asyncpg.Record]) -> None:
        asked = set()
        for claim, channel, given in zip(batch, ids, slots, strict=True):
            workspace = claim["workspace_id"]
            own, group = self.channels[workspace, channel], self.groups[workspace]
            if workspace in asked:
                demand(not given["taken"], "one slot of a group in a call", given)
                continue
            asked.add(workspace)
            slot = max(self.now, own.opens or self.now, group.opens or self.now)
            demand(given["slot_at"] == slot, "everybody's own slot", given, slot)
            waits = slot > self.now + timedelta(seconds=5) or (own.opens or slot) > max(self.now, group.opens or slot)
            demand(given["taken"] is not waits, "a group waits for no channel", given, slot)
            if given["taken"]:
                own.opens, group.opens = slot + own.step, slot + group.step
                own.give(slot)
                group.give(slot)

    def _available(self, tenant: Tenant) -> int:
        """How many a claim could give now, and must in the end."""
        could = 0
        for channel in self.ids:
            key = (tenant.workspace, channel)
            places = self.places[key] - self._waiting(*key, "sending")
            could += max(0, min(self._waiting(*key), places, self.channels[key].room(self.now)))
        return min(could, self.groups[tenant.workspace].room(self.now))

    def _waiting(self, workspace: UUID, channel: UUID, status: str = "queued") -> int:
        own = (row for (where, _), row in self.rows.items() if (where, row.channel) == (workspace, channel))
        return sum(row.status == status for row in own)

    def _some(self) -> list[Tenant]:
        return self.dice.sample(self.among, self.dice.randint(1, len(self.among)))

    async def _compare(self, kind: str) -> None:
        ids = [one.workspace for one in self.among]
        rows = await self.pool.fetch(
            "SELECT workspace_id, delivery_id, status::text, claim_token, "
            "coalesce(jsonb_array_length(render_meta #> '{series_progress,sent_items}'), 0) AS parts "
            "FROM deliveries WHERE workspace_id = ANY ($1)",
            ids,
        )
        for workspace, delivery, *seen in map(tuple, rows):
            row = self.rows[workspace, delivery]
            demand(seen == [row.status, row.token, row.parts], f"a delivery after {kind}", seen, row)
        for name, gates in (("platform_limits", self.groups), ("channels", self.channels)):
            await self._compare_gates(kind, name, ids, gates)

    async def _compare_gates(self, kind: str, table: str, ids: list[UUID], gates: dict[Any, Gate]) -> None:
        key = "workspace_id" if table == "platform_limits" else "workspace_id, channel_id"
        for *found, opens in await self.pool.fetch(
            f"SELECT {key}, next_allowed_at FROM {table} WHERE workspace_id = ANY ($1)", ids
        ):
            gate = gates[found[0] if len(found) == 1 else tuple(found)]
            demand(opens == gate.opens, f"a gate of {table} after {kind}", opens, gate)
            if gate.slots:
                check_spacing(gate.slots, gate.step // timedelta(microseconds=1), table)
