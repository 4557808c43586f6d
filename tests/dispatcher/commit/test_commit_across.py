"""Few outcomes in each of many workspaces are committed in one call; one workspace that fails is left out of it."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
from autopost_contracts.ids import ClaimToken, DeliveryId, RunId, WorkspaceId
from autopost_contracts.outcomes import Sent
from autopost_dispatcher.commit.commit import Committer
from autopost_dispatcher.commit.finished import FinishedDelivery
from dispatcher.support.sample_claims import claim
from harness.eventually import eventually

SENT = Sent(provider_message_id="1")


class RefusedError(Exception):
    """Nothing that another try would help against."""


class Ledger:
    """Refuses whatever has a delivery of the ``broken`` workspace."""

    def __init__(self, broken: WorkspaceId) -> None:
        self.broken = broken
        self.across: list[list[WorkspaceId]] = []
        self.alone: list[WorkspaceId] = []
        self.committed: set[DeliveryId] = set()
        self.aside: list[UUID] = []

    async def commit_sent_across(
        self,
        run_id: RunId,
        workspaces: Sequence[WorkspaceId],
        ids: Sequence[DeliveryId],
        tokens: Sequence[ClaimToken],
        provider_message_ids: Sequence[str],
    ) -> tuple[list[int], dict[WorkspaceId, float]]:
        self.across.append(list(workspaces))
        if self.broken in workspaces:
            raise RefusedError
        self.committed.update(ids)
        return [], {}

    async def commit_sent(
        self,
        workspace: WorkspaceId,
        run_id: RunId,
        ids: Sequence[DeliveryId],
        tokens: Sequence[ClaimToken],
        provider_message_ids: Sequence[str],
    ) -> list[int]:
        if workspace == self.broken:
            raise RefusedError
        self.alone.append(workspace)
        self.committed.update(ids)
        return []

    async def commit_deliveries(self, workspace: WorkspaceId, *_: Any) -> set[DeliveryId]:
        if workspace == self.broken:
            raise RefusedError
        return set()

    async def read_outcomes(self, workspace: WorkspaceId, ids: list[DeliveryId], tokens: list[Any]) -> set[DeliveryId]:
        return set(ids) - self.committed

    async def set_aside(self, workspace: UUID, *_: Any) -> None:
        self.aside.append(workspace)


def ended(workspace: WorkspaceId) -> FinishedDelivery:
    return FinishedDelivery(msgspec.structs.replace(claim(), workspace_id=workspace), SENT)


async def test_a_workspace_whose_outcome_is_set_aside_leaves_the_others_their_common_commits() -> None:
    broken, *others = (WorkspaceId(uuid4()) for _ in range(4))
    ledger = Ledger(broken)
    committer = Committer(
        ledger,  # type: ignore[arg-type]
        run_id=RunId(uuid4()),
        pause=timedelta(hours=1),
        disable_streak=3,
        committed=lambda *_: None,
    )
    running = asyncio.create_task(committer.run())
    for workspace in (broken, *others):
        committer.put(ended(workspace))
    await eventually(lambda: ledger.aside)
    assert set(ledger.alone) == set(others)

    for workspace in others:
        committer.put(ended(workspace))
    await eventually(lambda: len(ledger.committed) == 2 * len(others))
    running.cancel()

    assert set(ledger.across[-1]) == set(others)
    assert len(ledger.alone) == len(others)
