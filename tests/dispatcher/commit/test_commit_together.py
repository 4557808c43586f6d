"""Outcomes of many workspaces are committed together; what cannot be is committed as before."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from autopost_contracts.ids import ClaimToken, DeliveryId, RunId, WorkspaceId
from autopost_contracts.outcomes import Failed, Scope, Sent
from autopost_dispatcher.commit.commit import FEW, Committer
from autopost_dispatcher.commit.finished import FinishedDelivery
from dispatcher.support.sample_claims import claim

MANY = [WorkspaceId(UUID(int=number)) for number in range(1, 9)]
REFUSAL = asyncpg.NumericValueOutOfRangeError("out of range")


class Ledger:
    """Commits everything but ``unsettled`` deliveries; ``error`` fails the calls over many workspaces."""

    def __init__(self, error: Exception | None = None, *, happens: bool = False) -> None:
        self.error = error
        self.happens = happens
        """The commit happens in spite of the error."""
        self.unsettled: set[DeliveryId] = set()
        self.across: list[set[WorkspaceId]] = []
        self.sent_in: list[WorkspaceId] = []
        self.failed_in: list[WorkspaceId] = []
        self.committed: list[DeliveryId] = []
        self.dues: dict[WorkspaceId, float] = {}

    async def commit_sent_across(
        self,
        run: RunId,
        workspaces: Sequence[WorkspaceId],
        ids: Sequence[DeliveryId],
        tokens: Sequence[ClaimToken],
        messages: Sequence[str],
    ) -> tuple[list[int], dict[WorkspaceId, float]]:
        self.across.append(set(workspaces))
        if self.error is None or self.happens:
            self.committed += [one for one in ids if one not in self.unsettled]
        if self.error:
            raise self.error
        return [nth for nth, one in enumerate(ids) if one in self.unsettled], self.dues

    async def commit_sent(self, workspace: WorkspaceId, run: RunId, ids: Sequence[DeliveryId], *_: Any) -> list[int]:
        self.sent_in.append(workspace)
        self.committed += ids
        return []

    async def commit_deliveries(
        self, workspace: WorkspaceId, run: RunId, outcomes: Sequence[dict[str, Any]], *_: Any
    ) -> set[DeliveryId]:
        self.failed_in.append(workspace)
        self.committed += [one["delivery_id"] for one in outcomes]
        return set()

    async def read_outcomes(self, workspace: WorkspaceId, ids: Sequence[DeliveryId], *_: Any) -> set[DeliveryId]:
        return set(ids) - set(self.committed)


def ended(workspace: WorkspaceId, outcome: Sent | Failed | None = None) -> FinishedDelivery:
    return FinishedDelivery(claim(workspace_id=workspace), outcome or Sent(provider_message_id="1"))


async def commit(ledger: Ledger, *outcomes: FinishedDelivery) -> dict[WorkspaceId, float | None]:
    """Where the schedule was told that places came free, and when the next delivery there is due."""
    told: dict[WorkspaceId, float | None] = {}
    committer = Committer(
        ledger,  # type: ignore[arg-type]
        run_id=RunId(uuid4()),
        pause=timedelta(hours=1),
        disable_streak=3,
        committed=lambda workspace, due_in=None: told.update({workspace: due_in}),
    )
    running = asyncio.create_task(committer.run())
    for one in outcomes:
        committer.put(one)
    async with asyncio.timeout(10):
        await committer.flush()
    running.cancel()
    assert committer.waiting == 0
    assert sorted(ledger.committed) == sorted(one.claim.delivery_id for one in outcomes)
    return told


async def test_outcomes_of_many_workspaces_are_one_call_and_nobody_has_to_ask_what_is_due() -> None:
    ledger = Ledger()
    ledger.dues = {MANY[0]: 0.5}

    told = await commit(ledger, *(ended(one) for one in MANY for _ in range(2)))

    assert (ledger.across, ledger.sent_in) == ([set(MANY)], [])
    assert told == {one: 0.5 if one is MANY[0] else float("inf") for one in MANY}


async def test_one_workspace_alone_or_with_many_outcomes_has_its_own_commit() -> None:
    alone, large = Ledger(), Ledger()

    await commit(alone, ended(MANY[0]))
    await commit(large, *(ended(MANY[0]) for _ in range(FEW + 1)), ended(MANY[1]), ended(MANY[2]))

    assert (alone.across, alone.sent_in) == ([], [MANY[0]])
    assert (large.across, large.sent_in) == ([{MANY[1], MANY[2]}], [MANY[0]])


async def test_failures_and_what_is_left_are_committed_in_their_workspaces() -> None:
    ledger = Ledger()
    left = ended(MANY[2])
    ledger.unsettled = {left.claim.delivery_id}

    await commit(ledger, ended(MANY[0]), ended(MANY[1], Failed.transient(Scope.DELIVERY, "x", "x")), left)

    assert ledger.across == [{MANY[0], MANY[2]}]
    assert (ledger.failed_in, ledger.sent_in) == ([MANY[1]], [MANY[2]])


@pytest.mark.parametrize("error", [REFUSAL, ConnectionResetError()], ids=["refused", "lost"])
async def test_after_an_error_each_workspace_is_committed_alone(error: Exception) -> None:
    ledger = Ledger(error)

    await commit(ledger, *(ended(one) for one in MANY))

    assert sorted(ledger.sent_in) == MANY


async def test_a_commit_whose_answer_was_lost_is_read_back_and_not_made_twice() -> None:
    ledger = Ledger(ConnectionResetError(), happens=True)

    await commit(ledger, *(ended(one) for one in MANY))

    assert (ledger.sent_in, ledger.failed_in) == ([], [])
