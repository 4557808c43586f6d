"""A dispatcher that kills itself with SIGKILL at a given point.

Run as a program it is warmed up once and then forks a child for each line of standard input: ``point`` is where that
child kills itself, ``hang`` lets it live until it is killed. The child's pid goes to standard output, then its end.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
from autopost_contracts.ids import ClaimToken, DeliveryId, RunId, WorkspaceId
from autopost_dispatcher.gateway import NEVER, Claim, Claimed, Gateway
from autopost_runtime.telemetry import logs
from dispatcher.support.running_dispatcher import configured, running_dispatcher
from harness.buckets import Bucket

LEASE = timedelta(seconds=60)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def gateway_killed_at(point: str) -> type[Gateway]:
    """``claimed``, ``unrecorded:N``, ``recorded:N``, ``uncommitted`` and ``committed``."""

    class KilledGateway(Gateway):
        has_claimed = False

        async def claim_deliveries(
            self, workspace: WorkspaceId, run_id: RunId, limit: int, lease: timedelta
        ) -> Claimed:
            if self.has_claimed:
                return Claimed((), NEVER)
            claimed = await super().claim_deliveries(workspace, run_id, limit, lease)
            self.has_claimed = bool(claimed.claims)
            if claimed.claims and point == "claimed":
                die()
            return claimed

        async def record_progress(self, claim: Claim, part: int, provider_ids: Sequence[str]) -> bool:
            if point == f"unrecorded:{part}":
                die()
            recorded = await super().record_progress(claim, part, provider_ids)
            if point == f"recorded:{part}":
                die()
            return recorded

        async def commit_deliveries(
            self,
            workspace: WorkspaceId,
            run_id: RunId,
            outcomes: list[dict[str, Any]],
            pause: timedelta,
            disable_streak: int,
        ) -> set[DeliveryId]:
            if point == "uncommitted":
                die()
            stale = await super().commit_deliveries(workspace, run_id, outcomes, pause, disable_streak)
            if point == "committed":
                die()
            return stale

        async def commit_sent(
            self,
            workspace: WorkspaceId,
            run_id: RunId,
            ids: Sequence[DeliveryId],
            tokens: Sequence[ClaimToken],
            provider_message_ids: Sequence[str],
        ) -> list[int]:
            if point == "uncommitted":
                die()
            left = await super().commit_sent(workspace, run_id, ids, tokens, provider_message_ids)
            if point == "committed":
                die()
            return left

    return KilledGateway


async def live(url: str, simulator: str, bucket: Bucket, point: str) -> None:
    """One delivery is claimed and no more: it is the one that this death is about."""
    config = configured(url, simulator, bucket, sending_lease=LEASE, dispatcher_limit_per_workspace=1, concurrency=1)
    async with running_dispatcher(config, gateway_killed_at(point)):
        await asyncio.Event().wait()


def main() -> None:
    url, simulator, bucket = sys.argv[1], sys.argv[2], msgspec.json.decode(sys.argv[3], type=Bucket)
    logs.setup("dispatcher", "json", "error")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(live(url, simulator, bucket, line.strip()))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
