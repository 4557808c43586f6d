"""Publish commands that the process which wrote them did not, and pause publications whose time is long past."""

from datetime import timedelta

from autopost_runtime.nats.bus import Bus, NotPublished, PublishUnknown
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.gateway import Gateway, OutboxCommand

LEFT_AFTER = timedelta(seconds=2)
BATCH = 500
SUBJECT = "delivery.commands"

relayed = metrics.counter("autopost_commands_relayed_total", "Commands that the monitor published.")


class CommandRelay:
    """A command that is published twice has one message id, so it is stored once; and it changes nothing twice."""

    def __init__(self, gateway: Gateway, bus: Bus) -> None:
        self._gateway = gateway
        self._bus = bus

    async def run_once(self) -> None:
        if not self._bus.connected:  # the sweep of ingest works from the table
            return
        while commands := await self._gateway.unpublished_commands(LEFT_AFTER, BATCH):
            published = await self._publish_all(commands)
            if published:
                await self._gateway.commands_published(published)
                relayed.add(len(published))
            if len(published) < len(commands) or len(commands) < BATCH:
                return

    async def _publish_all(self, commands: list[OutboxCommand]) -> list[OutboxCommand]:
        published = []
        for command in commands:
            subject = self._bus.topology.commands + command.subject.removeprefix(SUBJECT)
            headers = {"traceparent": command.traceparent} if command.traceparent else {}
            try:
                await self._bus.publish(subject, command.payload.encode(), msg_id=command.msg_id, headers=headers)
            except (NotPublished, PublishUnknown) as exc:
                get_logger().info("command.not_published", msg_id=command.msg_id, error=str(exc))
                if isinstance(exc, PublishUnknown):  # NATS hangs: the others would wait as long, each of them
                    break
                continue
            published.append(command)
        return published


class MissedPublications:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def run_once(self) -> None:
        while dropped := await self._gateway.drop_missed_publications(BATCH):
            get_logger().warning("publications.missed", publications=dropped)
