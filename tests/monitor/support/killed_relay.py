"""A relay that kills itself with SIGKILL at a given point.

Run as a program it is warmed up once and then forks a child for each line of standard input: where that child kills
itself. How it ended goes to standard output.
"""

import asyncio
import os
import signal
import sys

from autopost_monitor.relay.gateway import PendingEvent, RelayGateway
from autopost_runtime.telemetry import logs
from monitor.support.running_relay import running_relay


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def gateway_killed_at(point: str) -> type[RelayGateway]:
    """``read``: with events in hand. ``published``: when the stream has them. ``moved``: when the cursor knows it."""

    class KilledGateway(RelayGateway):
        async def next_audit_events(self, limit: int) -> list[PendingEvent]:
            events = await super().next_audit_events(limit // 100)
            if events and point == "read":
                die()
            return events

        async def advance_relay(self, seq: int, stream_seq: int) -> bool:
            if point == "published":
                die()
            moved = await super().advance_relay(seq, stream_seq)
            if point == "moved":
                die()
            return moved

    return KilledGateway


async def live(database_url: str, nats_url: str, namespace: str, point: str) -> None:
    async with running_relay(database_url, nats_url, namespace, gateway_killed_at(point)):
        await asyncio.Event().wait()


def main() -> None:
    logs.setup("monitor", "json", "error")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(live(*sys.argv[1:4], line.strip()))
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
