"""Outcomes are committed in batches, and a lost answer is read back before anything is done again."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from autopost_contracts.ids import ClaimToken, DeliveryId, RunId, WorkspaceId
from autopost_contracts.outcomes import Failed, Scope, Sent
from autopost_dispatcher.commit.commit import Committer
from autopost_dispatcher.commit.finished import FinishedDelivery
from autopost_dispatcher.send.end_delivery import Released
from dispatcher.support.sample_claims import WORKSPACE, claim

RUN = RunId(uuid4())
SENT = Sent(provider_message_id="1")


class Ledger:
    """Commits like the database; ``lose`` makes the next answers get lost, before or after the commit."""

    def __init__(self) -> None:
        self.batches: list[list[DeliveryId]] = []
        self.committed: list[DeliveryId] = []
        self.outcomes: list[dict[str, Any]] = []
        self.sent: list[tuple[DeliveryId, ClaimToken, str]] = []
        self.not_so_short: set[DeliveryId] = set()
        """Those that cannot go the short way, although they arrived."""
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
        self.outcomes += outcomes
        await self._commit([outcome["delivery_id"] for outcome in outcomes])
        return set()

    async def commit_sent(
        self,
        workspace: WorkspaceId,
        run_id: RunId,
        ids: Sequence[DeliveryId],
        tokens: Sequence[ClaimToken],
        provider_message_ids: Sequence[str],
    ) -> list[int]:
        self.sent += zip(ids, tokens, provider_message_ids, strict=True)
        await self._commit([one for one in ids if one not in self.not_so_short])
        return [place for place, one in enumerate(ids) if one in self.not_so_short]

    async def _commit(self, ids: list[DeliveryId]) -> None:
        await self.gate.wait()
        self.batches.append(ids)
        how = self.lose.pop(0) if self.lose else None
        if how != "before":
            self.committed += ids
        if how:
            raise ConnectionResetError(how)

    async def read_outcomes(self, workspace: WorkspaceId, ids: list[DeliveryId], tokens: list[Any]) -> set[DeliveryId]:
        return set(ids) - set(self.committed)


async def _committing(ledger: Ledger, *ended: FinishedDelivery) -> list[WorkspaceId]:
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


async def test_waiting_outcomes_are_committed_in_one_batch() -> None:
    ledger = Ledger()
    ended = [FinishedDelivery(claim(), SENT) for _ in range(50)]

    told = await _committing(ledger, *ended)

    assert len(ledger.batches) == 1
    assert sorted(ledger.committed) == sorted(one.claim.delivery_id for one in ended)
    assert told == [WORKSPACE]


async def test_outcomes_no_longer_wait_when_a_commit_is_reported() -> None:
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
        committer.put(FinishedDelivery(claim(), SENT))
    async with asyncio.timeout(10):
        await committer.flush()
    running.cancel()

    assert found == [0]


async def test_a_commit_whose_answer_was_lost_is_not_made_twice() -> None:
    ledger = Ledger()
    ledger.lose = ["after"]

    await _committing(ledger, FinishedDelivery(claim(), SENT))

    assert len(ledger.committed) == 1


async def test_a_commit_that_never_happened_is_made_again() -> None:
    ledger = Ledger()
    ledger.lose = ["before", "before"]
    ended = [FinishedDelivery(claim(), SENT), FinishedDelivery(claim(), Released())]

    await _committing(ledger, *ended)

    assert sorted(ledger.committed) == sorted(one.claim.delivery_id for one in ended)


async def test_an_unstorable_outcome_does_not_affect_the_others() -> None:
    """One NUL in a provider's answer would refuse the whole batch."""
    rude = Failed.transient(Scope.PLATFORM, "unreadable_answer", "a\x00b", raw={"snippet": "c\x00d"})
    ledger = Ledger()

    await _committing(ledger, FinishedDelivery(claim(), rude))

    [outcome] = ledger.outcomes
    assert (outcome["message"], outcome["snippet"]) == ("a\ufffdb", "c\ufffdd")


async def test_single_message_successes_use_commit_sent() -> None:
    ledger = Ledger()
    ended = [
        FinishedDelivery(claim(), Sent(provider_message_id="a")),
        FinishedDelivery(claim(), Sent(provider_message_id="b", parts=(("b",),))),
    ]

    await _committing(ledger, *ended)

    assert ledger.sent == [
        (one.claim.delivery_id, one.claim.claim_token, name) for one, name in zip(ended, "ab", strict=True)
    ]
    assert ledger.outcomes == []


async def test_outcomes_that_commit_sent_cannot_take_use_commit_deliveries() -> None:
    ledger = Ledger()
    ended = [FinishedDelivery(claim(), SENT) for _ in range(3)]
    ledger.not_so_short = {ended[1].claim.delivery_id}

    await _committing(ledger, *ended)

    [outcome] = ledger.outcomes
    assert outcome["delivery_id"] == ended[1].claim.delivery_id
    assert sorted(ledger.committed) == sorted(one.claim.delivery_id for one in ended)


async def test_all_message_ids_of_several_parts_are_kept() -> None:
    ledger = Ledger()
    album = Sent(provider_message_id="1", parts=(("1", "2"),))

    await _committing(ledger, FinishedDelivery(claim(), SENT), FinishedDelivery(claim(), album))

    assert ledger.sent == []
    assert [outcome.get("parts") for outcome in ledger.outcomes] == [None, (("1", "2"),)]
