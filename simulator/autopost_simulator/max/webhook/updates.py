"""Updates for bots: to the webhook if there is one, else to a queue for ``GET /updates``.

The marker is the next update that a bot expects; a request with it marks all earlier ones as read. Without a
marker MAX returns only the newest update.
"""

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max.events import Update
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import MaxError, named, payload
from autopost_simulator.max.webhook.subscription import read_subscription, why_unacceptable
from autopost_simulator.max.webhook.webhooks import Webhooks
from autopost_simulator.world import Bot

UPDATES_KEPT = 1_000


@dataclass(slots=True)
class _Queue:
    kept: deque[tuple[int, Update]] = field(default_factory=lambda: deque(maxlen=UPDATES_KEPT))
    last: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, update: Update) -> None:
        self.last += 1
        self.kept.append((self.last, update))
        self.changed.set()
        self.changed = asyncio.Event()

    def read(self, poll: "_Poll") -> list[tuple[int, Update]]:
        if poll.marker is not None:
            while self.kept and self.kept[0][0] < poll.marker:
                self.kept.popleft()
        wanted = [entry for entry in self.kept if not poll.types or entry[1]["update_type"] in poll.types]
        return wanted[-1:] if poll.marker is None else wanted[: poll.limit]


@dataclass(frozen=True, slots=True)
class _Poll:
    marker: int | None
    limit: int
    timeout: float
    types: frozenset[str]

    @classmethod
    def of(cls, asked: OperationCall) -> "_Poll":
        types = frozenset(filter(None, asked.query.get("types", "").split(",")))
        marker = asked.integer("marker")
        return cls(marker, _bounded(asked, "limit", 1, 1000, 100), _bounded(asked, "timeout", 0, 90, 30), types)


class Updates:
    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks
        self._queues: defaultdict[str, _Queue] = defaultdict(_Queue)
        self.table = {
            "/updates": {"GET": self.poll},
            "/subscriptions": {"GET": self.list_subscriptions, "POST": self.subscribe, "DELETE": self.unsubscribe},
        }

    def publish(self, bot: Bot, update: Update) -> None:
        if self._webhooks.of(bot):
            self._webhooks.publish(bot, update)
        else:
            self._queues[bot.token].put(update)

    async def wait(self, bot: Bot, asked: OperationCall) -> None:
        """Wait for an update or for the timeout of ``GET /updates``."""
        try:
            poll = _Poll.of(asked)
        except MaxError:
            return
        queue = self._queues[bot.token]
        try:
            async with asyncio.timeout(poll.timeout):
                while not self._webhooks.of(bot) and not queue.read(poll):
                    await queue.changed.wait()
        except TimeoutError:
            return

    def poll(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        if self._webhooks.of(bot):
            raise named("webhook_is_set")
        poll = _Poll.of(asked)
        queue = self._queues[bot.token]
        found = queue.read(poll)
        following = found[-1][0] + 1 if found else queue.last + 1
        return {"updates": [update for _, update in found], "marker": following}

    def list_subscriptions(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        return {"subscriptions": [subscription.describe() for subscription in self._webhooks.of(bot)]}

    def subscribe(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        body = read_subscription(asked.body)
        if why := why_unacceptable(body.url):
            return {"success": False, "message": why}
        self._webhooks.subscribe(bot, body)
        return {"success": True}

    def unsubscribe(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        if self._webhooks.unsubscribe(bot.token, asked.query.get("url", "")):
            return {"success": True}
        return {"success": False, "message": "Subscription not found"}

    def clear(self) -> None:
        self._queues.clear()


def _bounded(asked: OperationCall, name: str, least: int, most: int, usual: int) -> int:
    given = asked.query.get(name)
    value = usual if given is None else asked.integer(name)
    if value is None or not least <= value <= most:
        raise payload(f"{name}: must be between {least} and {most}")
    return value
