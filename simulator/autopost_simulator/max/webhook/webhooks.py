"""Deliver updates to webhooks, with the retries of MAX.

Only an answer with status 200 in time counts as success. A failed delivery is retried after 60 s, then after 2.5 times
the previous delay, ten times at most; a webhook without a success for eight hours is unsubscribed. First attempts are
made in order, one at a time, unless the settings say otherwise; a failed delivery does not block later ones, so its
retry is out of order. (MAX does not document whether it waits.)
"""

import asyncio
import heapq
import math
import time
from collections import deque
from http import HTTPStatus
from typing import Any

import aiohttp

from autopost_simulator.clock import Clock
from autopost_simulator.max.events import Update
from autopost_simulator.max.settings import MaxSettings
from autopost_simulator.max.shapes import milliseconds
from autopost_simulator.max.webhook.subscription import Subscription, SubscriptionBody, WebhookDelivery
from autopost_simulator.world import Bot

FIRST_PAUSE = 60.0
GROWTH = 2.5
RETRIES = 10
SECRET_HEADER = "X-Max-Bot-Api-Secret"  # noqa: S105  the name of a header
RECORDS_KEPT = 10_000


class Webhooks:
    def __init__(self, clock: Clock, settings: MaxSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._by_bot: dict[str, dict[str, tuple[Subscription, asyncio.Task[None]]]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._published = 0
        self.records: deque[dict[str, Any]] = deque(maxlen=RECORDS_KEPT)

    def of(self, bot: Bot) -> list[Subscription]:
        return [subscription for subscription, _ in self._by_bot.get(bot.token, {}).values()]

    def subscribe(self, bot: Bot, body: SubscriptionBody) -> None:
        self.unsubscribe(bot.token, body.url)
        subscription = Subscription(body=body, time=milliseconds(self._clock.now()))
        delivering = asyncio.create_task(self._deliver_all(bot.token, subscription))
        self._by_bot.setdefault(bot.token, {})[body.url] = subscription, delivering

    def unsubscribe(self, token: str, url: str) -> bool:
        found = self._by_bot.get(token, {}).pop(url, None)
        if found is not None and found[1] is not asyncio.current_task():
            found[1].cancel()
        return found is not None

    def publish(self, bot: Bot, update: Update) -> None:
        for subscription in self.of(bot):
            if subscription.wants(update):
                self._published += 1
                due = time.monotonic() + self._settings.webhook_delay(update["update_type"])
                for _ in range(self._settings.webhook_copies):
                    subscription.push(WebhookDelivery(due=due, number=self._published, update=update))

    def clear(self) -> None:
        for token, by_url in list(self._by_bot.items()):
            for url in list(by_url):
                self.unsubscribe(token, url)
        self.records.clear()

    async def close(self) -> None:
        tasks = [task for by_url in self._by_bot.values() for _, task in by_url.values()]
        self.clear()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _deliver_all(self, token: str, subscription: Subscription) -> None:
        running: set[asyncio.Task[None]] = set()
        try:
            while (delivery := await self._next(subscription)) is not None:
                running.add(asyncio.create_task(self._try(subscription, delivery)))
                if len(running) >= self._settings.webhook_parallel:
                    _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                if time.monotonic() >= self._gives_up(subscription):
                    break
        finally:
            for call in running:
                call.cancel()
        self.unsubscribe(token, subscription.url)

    async def _next(self, subscription: Subscription) -> WebhookDelivery | None:
        """The next due delivery; ``None`` when the webhook has failed for too long."""
        while True:
            subscription.changed.clear()
            now = time.monotonic()
            due = subscription.pending[0].due if subscription.pending else math.inf
            if due <= now:
                return heapq.heappop(subscription.pending)
            gives_up = self._gives_up(subscription)
            if gives_up <= now:
                return None
            await _changed(subscription.changed, min(due, gives_up) - now)

    def _gives_up(self, subscription: Subscription) -> float:
        if subscription.failing_since is None:
            return math.inf
        return subscription.failing_since + self._settings.webhook_patience / self._settings.webhook_time_scale

    async def _try(self, subscription: Subscription, delivery: WebhookDelivery) -> None:
        started = self._clock.monotonic_ns()
        status, error = await self._post(subscription, delivery)
        ended = self._clock.monotonic_ns()
        if status == HTTPStatus.OK:
            subscription.failing_since, again_after = None, None
        else:
            again_after = self._put_off(subscription, delivery)
        self.records.append(
            {
                "number": delivery.number,
                "url": subscription.url,
                "update_type": delivery.update["update_type"],
                "attempt": delivery.attempt,
                "waited": delivery.waited,
                "status": status,
                "error": error,
                "again_after": again_after,
                "started_ns": started,
                "ended_ns": ended,
            }
        )

    async def _post(self, subscription: Subscription, delivery: WebhookDelivery) -> tuple[int | None, str | None]:
        secret = subscription.body.secret
        try:
            async with self._client().post(
                subscription.url,
                json=delivery.update,
                headers={} if secret is None else {SECRET_HEADER: secret},
                timeout=aiohttp.ClientTimeout(total=self._settings.webhook_timeout),
                allow_redirects=False,
            ) as response:
                return response.status, None
        except (aiohttp.ClientError, TimeoutError) as error:
            return None, type(error).__name__

    def _put_off(self, subscription: Subscription, delivery: WebhookDelivery) -> float | None:
        """Unscaled seconds until the next attempt; ``None`` after the last."""
        now = time.monotonic()
        subscription.failing_since = subscription.failing_since or now
        if delivery.attempt > RETRIES:
            return None
        pause = FIRST_PAUSE * GROWTH ** (delivery.attempt - 1)
        subscription.push(
            WebhookDelivery(
                due=now + pause / self._settings.webhook_time_scale,
                number=delivery.number,
                update=delivery.update,
                attempt=delivery.attempt + 1,
                waited=pause,
            )
        )
        return pause

    def _client(self) -> aiohttp.ClientSession:
        """A new connection per call: a closed idle connection would look like a failure."""
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        return self._session


async def _changed(event: asyncio.Event, within: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), None if within == math.inf else within)
    except TimeoutError:
        return
