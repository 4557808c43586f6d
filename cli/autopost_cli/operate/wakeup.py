"""Wake the dispatchers after an operator command."""

import asyncio
import os
from contextlib import suppress
from uuid import UUID

import nats.errors
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import DEFAULT_NAMESPACE, Topology

from autopost_cli.operate.jetstream import UnreadableError, connected

WAKEUP_TIMEOUT = 2.0


async def wake_dispatchers(workspace: UUID) -> None:
    """Call it after the commit. Never raises and takes at most two seconds: without it the next poll finds the work."""
    nats_url = os.environ.get("AUTOPOST_NATS_URL") or "off"
    if nats_url == "off":
        return
    topology = Topology(os.environ.get("AUTOPOST_NATS_NAMESPACE") or DEFAULT_NAMESPACE)
    with suppress(UnreadableError, nats.errors.Error, OSError, ValueError):  # TimeoutError is an OSError
        async with asyncio.timeout(WAKEUP_TIMEOUT), connected(nats_url) as js:
            await js.publish(topology.wakeup_dispatch(WorkspaceId(workspace)))
