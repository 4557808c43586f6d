"""The circuit of a rate group as plain Python, by its rules; and random histories that compare the database with it."""

import random
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
from db.model.queue_model import demand
from db.support.builders import Tenant, permanent, released, sent, transient
from db.support.circuits import ANSWERED, Circuit, no_answer

ENDINGS: dict[str, Any] = {
    "sent": sent,
    "refused": lambda claim: permanent(claim, "delivery", **ANSWERED),
    "429": lambda claim: transient(claim, "platform", retry_after_ms=0, **ANSWERED),
    "silence": lambda claim: no_answer(claim, ambiguous=False),
    "ambiguous": no_answer,
    "busy": lambda claim: no_answer(claim, retry_after_ms=0, ambiguous=False),
    "upload host": transient,
    "released": released,
}
ANSWERS = frozenset({"sent", "refused", "429"})
SILENCES = frozenset({"silence", "ambiguous"})
STEPS = (
    "enqueue",
    "claim",
    "claim",
    "commit",
    "commit",
    "commit",
    "silence",
    "probe",
    "probe",
    "trial",
    "lose",
    "late",
)
WEIGHTS = {"quiet": ("silence", "ambiguous", "upload host", "released"), "mixed": tuple(ENDINGS)}


@dataclass
class Model:
    state: str = "closed"
    failed: list[UUID] = field(default_factory=list)
    asked: bool = False
    trial: UUID | None = None
    probes: int = 0

    def end(self, delivery: UUID, ending: str) -> None:
        if self.state == "half" and delivery == self.trial:
            self.trial = None
            if ending in ANSWERS:
                self.close()
            elif ending in SILENCES or ending == "busy":
                self.state = "open"
        elif self.state == "closed" and ending in ANSWERS:
            self.failed, self.asked = [], False
        elif self.state == "closed" and ending in SILENCES:
            self.asked = self.asked or delivery in self.failed
            self.failed = [one for one in self.failed if one != delivery] + [delivery]
            if len(self.failed) == 3:
                self.open()

    def open(self) -> None:
        self.state, self.failed, self.asked, self.probes = "open", [], False, 0

    def close(self) -> None:
        self.state, self.probes = "closed", 0

    def probed(self, *, answered: bool) -> None:
        if self.state == "open" and answered:
            self.state = "half"
        elif self.state == "closed" and answered:
            self.failed, self.asked = [], False
            self.probes = self.probes
        elif self.state == "closed":
            self.open()


class CircuitHistory:
    """One connection, one group; every step is compared."""

    def __init__(self, tenant: Tenant, seed: int) -> None:
        self.dice = random.Random(seed)
        self.tenant = tenant
        self.circuit = Circuit(tenant)
        self.model = Model()
        self.claims: list[asyncpg.Record | dict[str, Any]] = []
        self.late: tuple[asyncpg.Record, str] | None = None
        """A probe whose answer is still to come, and what it was asked about."""
        self.committed: list[asyncpg.Record | dict[str, Any]] = []

    async def run(self, steps: int) -> None:
        begins_away = self.dice.random() < 0.3
        for number in range(3 if begins_away else self.dice.randint(1, 3)):
            await self.tenant.channel(max_parallel=(1, 3, 100)[number])
        if begins_away:
            await self._go_away()
        for _ in range(steps):
            kind = self.dice.choice(STEPS)
            await getattr(self, f"_{kind}")()
            await self._compare(kind)

    async def end(self) -> None:
        """Another history in this database meets nothing of this one: a dispatcher probes for all workspaces."""
        await self.tenant.db.execute(
            "UPDATE workspaces SET status = 'disabled' WHERE workspace_id = $1", self.tenant.workspace
        )

    async def _go_away(self) -> None:
        """To where a random walk seldom comes: the circuit is open, and other claims are still under way."""
        for _ in range(6):
            await self.tenant.enqueue(max_attempts=9)
        self.claims += await self.tenant.claim(8)
        await self._commit_as(["silence"] * 3)
        await self._compare("an outage")

    async def _compare(self, kind: str) -> None:
        row, model = await self.circuit.row(), self.model
        seen = (row["state"], row["failed_deliveries"], row["trial"])
        demand(seen == (model.state, model.failed, model.trial), f"circuit after {kind}", seen, model)
        if model.state == "closed":
            demand((row["probe_at"] is not None) == model.asked, "whether the platform is asked", dict(row), model)
        else:
            demand(row["probes"] == model.probes, "the number of the probes goes on", dict(row), model)
        history = await self.circuit.history()
        demand(history == ["group_opened", "group_closed"] * (len(history) // 2) + history[len(history) // 2 * 2 :], "")
        demand(len(history) % 2 == (model.state != "closed"), "an event for each opening and closing", history)

    async def _enqueue(self) -> None:
        for _ in range(self.dice.randint(1, 3)):
            await self.tenant.enqueue(max_attempts=self.dice.choice([1, 2, 9]))

    async def _claim(self) -> None:
        await self.circuit.wait_is_over()
        claims = await self.tenant.claim(self.dice.randint(1, 4))
        demand(not claims or self.model.state == "closed", "nothing is claimed unless closed", self.model, claims)
        self.claims += claims

    async def _commit(self) -> None:
        await self._end(WEIGHTS["mixed"])

    async def _silence(self) -> None:
        await self._end(WEIGHTS["quiet"])

    async def _end(self, endings: tuple[str, ...]) -> None:
        chosen = [self.dice.choice(endings) for _ in range(self.dice.randint(1, 3))]
        if self.dice.random() < 0.3:
            chosen = ["sent"] * len(chosen)
        await self._commit_as(chosen)

    async def _commit_as(self, endings: list[str]) -> None:
        """Of random claims; now and then also of one that was committed before."""
        self.dice.shuffle(self.claims)
        batch, self.claims = self.claims[: len(endings)], self.claims[len(endings) :]
        if self.committed and len(batch) < len(endings) and self.dice.random() < 0.5:
            batch.append(self.dice.choice(self.committed))
        if batch:
            chosen = endings[: len(batch)]
            verdicts = await self.tenant.commit(
                *(ENDINGS[ending](claim) for ending, claim in zip(chosen, batch, strict=True))
            )
            self.committed = [*self.committed, *batch][-9:]
            for ending, claim, verdict in zip(chosen, batch, verdicts, strict=True):
                if verdict["verdict"] == "committed":
                    self.model.end(claim["delivery_id"], ending)

    async def _probe(self) -> None:
        await self.circuit.wait_is_over()
        await self.circuit.due()
        before = self.model.state
        probes = await self.circuit.takes()
        is_due = before == "open" or (before == "closed" and self.model.asked)
        if before == "half":
            demand(all(one["is_trial"] for one in probes), "an answered platform is not asked again", probes)
            demand(not probes or self.model.trial is None, "one trial at a time", probes)
            return
        demand(len(probes) == is_due, "a platform is asked when it is due", probes, self.model)
        if probes:
            self.model.probes += before == "open"
            if self.dice.random() < 0.3:
                self.late = (probes[0], before)
            else:
                await self._answer(probes[0], before)

    async def _answer(self, probe: asyncpg.Record, asked_while: str) -> None:
        answered = self.dice.random() < 0.6
        row = await self.circuit.row()
        still = row["probe_at"] == probe["probe_at"] and self.model.state == asked_while
        told = await self.circuit.record(probe, answered=answered)
        demand((told is not None) == still, "an answer of a probe that is over counts no more", told, self.model)
        if still:
            self.model.probed(answered=answered)
            demand(told == self.model.state, "a probe tells what it did", told, self.model)

    async def _late(self) -> None:
        if self.late:
            (probe, asked_while), self.late = self.late, None
            await self._answer(probe, asked_while)

    async def _trial(self) -> None:
        await self.circuit.wait_is_over()
        waiting = await self._waiting()
        trials = await self.circuit.trial()
        may = self.model.state == "half" and self.model.trial is None
        demand(len(trials) <= may, "one trial, and only in a half circuit", trials, self.model)
        demand(bool(trials) or not may or not waiting, "whatever may try is tried", waiting)
        for trial in trials:
            self.model.trial = trial["delivery_id"]
            self.claims.append(trial)
            chosen = next(one for one in waiting if one["delivery_id"] == trial["delivery_id"])
            best = min((one["is_risky"], one["attempt"]) for one in waiting)
            demand((chosen["is_risky"], chosen["attempt"]) == best, "the least tried, nothing risky", chosen, best)

    async def _lose(self) -> None:
        """The lease of the trial runs out, now and then."""
        if self.model.trial and self.dice.random() < 0.6:
            await self.tenant.set_delivery(self.model.trial, "sending_lease_until = now() - interval '1 second'")
            await self.circuit.takes()
            self.model.trial, self.model.state = None, "open"
            row = await self.circuit.row()
            self.model.probes = row["probes"]  # it may have been probed again at once

    async def _waiting(self) -> list[asyncpg.Record]:
        """What a claim could take, were the circuit closed."""
        return list(
            await self.tenant.db.fetch(
                """
                SELECT d.delivery_id, d.attempt,
                       d.attempt + 1 >= d.max_attempts OR coalesce(d.last_error @> '{"ambiguous": true}', false)
                           AS is_risky
                FROM deliveries d
                JOIN channels c USING (workspace_id, channel_id)
                WHERE d.workspace_id = $1 AND d.status IN ('queued', 'retry')
                  AND (d.next_retry_at IS NULL OR d.next_retry_at <= clock_timestamp())
                  AND c.enabled AND coalesce(c.paused_until, '-infinity') <= clock_timestamp()
                  AND (SELECT count(*) FROM deliveries s
                       WHERE s.workspace_id = d.workspace_id AND s.channel_id = d.channel_id
                         AND s.status = 'sending') < c.max_parallel
                """,
                self.tenant.workspace,
            )
        )
