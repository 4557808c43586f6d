"""Tell the dispatchers that an operator has given them something to do."""

import asyncio
import os
from contextlib import suppress
from uuid import UUID

import nats.errors
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import DEFAULT_NAMESPACE, Topology

from autopost_cli.events_stream import UnreadableError, connected

LIMIT = 2.0


async def wake_dispatchers(workspace: UUID) -> None:
    """After the commit. Never raises and never takes long: without it the next poll finds the same."""
    nats_url = os.environ.get("AUTOPOST_NATS_URL") or "off"
    if nats_url == "off":
        return
    topology = Topology(os.environ.get("AUTOPOST_NATS_NAMESPACE") or DEFAULT_NAMESPACE)
    with suppress(UnreadableError, nats.errors.Error, OSError, ValueError):  # TimeoutError is an OSError
        async with asyncio.timeout(LIMIT), connected(nats_url) as js:
            await js.publish(topology.wakeup_dispatch(WorkspaceId(workspace)))
