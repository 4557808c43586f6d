"""Outcomes are committed in batches, and a lost answer is read back before anything is done again."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

from autopost_contracts.ids import DeliveryId, RunId, WorkspaceId
from autopost_contracts.outcomes import Failed, Scope, Sent
from autopost_dispatcher.commit import Committer
from autopost_dispatcher.ended import Ended
from autopost_dispatcher.over import Released

from dispatcher.claims import WORKSPACE, claim

RUN = RunId(uuid4())
SENT = Sent(provider_message_id="1")


class Ledger:
    """Commits like the database; ``lose`` makes the next answers get lost, before or after the commit."""

    def __init__(self) -> None:
        self.batches: list[list[DeliveryId]] = []
        self.committed: list[DeliveryId] = []
        self.outcomes: list[dict[str, Any]] = []
        self.lose: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def commit_deliveries(
        self,
        workspace: WorkspaceId,
        run_id: RunId,
        outcomes: list[dict[str, Any]],
        pause: timedelta,
        disable_streak: int,
    ) -> set[DeliveryId]:
        await self.gate.wait()
        ids = [outcome["delivery_id"] for outcome in outcomes]
        self.batches.append(ids)
        self.outcomes += outcomes
        how = self.lose.pop(0) if self.lose else None
        if how != "before":
            self.committed += ids
        if how:
            raise ConnectionResetError(how)
        return set()

    async def read_outcomes(self, workspace: WorkspaceId, ids: list[DeliveryId], tokens: list[Any]) -> set[DeliveryId]:
        return set(ids) - set(self.committed)


async def _committing(ledger: Ledger, *ended: Ended) -> list[WorkspaceId]:
    told: list[WorkspaceId] = []
    committer = Committer(
        ledger,  # type: ignore[arg-type]
        run_id=RUN,
        pause=timedelta(hours=1),
        disable_streak=3,
        committed=told.append,
    )
    running = asyncio.create_task(committer.run())
    for one in ended:
        committer.put(one)
    async with asyncio.timeout(10):
        await committer.flush()
    running.cancel()
    return told


async def test_outcomes_that_wait_together_go_together() -> None:
    ledger = Ledger()
    ended = [Ended(claim(), SENT) for _ in range(50)]

    told = await _committing(ledger, *ended)

    assert len(ledger.batches) == 1
    assert sorted(ledger.committed) == sorted(one.claim.delivery_id for one in ended)
    assert told == [WORKSPACE]


async def test_who_is_told_of_a_commit_finds_it_no_longer_waiting() -> None:
    """Whoever waits for room asks only when told: counted a moment too long, a batch as large as the room would be
    the last one.
    """
    found: list[int] = []
    ledger = Ledger()
    committer = Committer(
        ledger,  # type: ignore[arg-type]
        run_id=RUN,
        pause=timedelta(hours=1),
        disable_streak=3,
        committed=lambda _: found.append(committer.waiting),
    )
    running = asyncio.create_task(committer.run())
    for _ in range(3):
        committer.put(Ended(claim(), SENT))
    async with asyncio.timeout(10):
        await committer.flush()
    running.cancel()

    assert found == [0]


async def test_a_commit_whose_answer_was_lost_is_not_made_twice() -> None:
    ledger = Ledger()
    ledger.lose = ["after"]

    await _committing(ledger, Ended(claim(), SENT))

    assert len(ledger.committed) == 1


async def test_a_commit_that_never_happened_is_made_again() -> None:
    ledger = Ledger()
    ledger.lose = ["before", "before"]
    ended = [Ended(claim(), SENT), Ended(claim(), Released())]

    await _committing(ledger, *ended)

    assert sorted(ledger.committed) == sorted(one.claim.delivery_id for one in ended)


async def test_garbage_that_cannot_be_stored_takes_nobody_down() -> None:
    """One NUL in a provider's answer would refuse the whole batch."""
    rude = Failed.transient(Scope.PLATFORM, "unreadable_answer", "a\x00b", raw={"snippet": "c\x00d"})
    ledger = Ledger()

    await _committing(ledger, Ended(claim(), rude))

    [outcome] = ledger.outcomes
    assert (outcome["message"], outcome["snippet"]) == ("a\ufffdb", "c\ufffdd")
