"""``getUpdates`` and the webhook: one of the two brings a bot its updates, the webhook first."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.fingerprint import fingerprint
from autopost_simulator.telegram.refusal import Described, TelegramError, TelegramRateLimited, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.updates.update_queue import DEFAULT_TYPES, FIRST_ID, TYPES, BotUpdate, UpdateQueue
from autopost_simulator.telegram.updates.webhook import BotWebhook
from autopost_simulator.telegram.updates.webhook_settings import WebhookSettings, read_settings, refuse_address
from autopost_simulator.world import Bot

LONGEST_POLL = 50
MOST_UPDATES = 100
DAY = timedelta(days=1)
RECORDS_KEPT = 10_000
SECOND = 1_000_000_000

WebhookCall = Callable[[Bot, dict[str, Any]], None]


@dataclass(slots=True)
class Inbox:
    """``poll`` is the request that waits; a new one ends it with an error."""

    queue: UpdateQueue
    webhook: BotWebhook | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    poll: asyncio.Future[TelegramError] | None = None
    webhook_set_ns: int | None = None


class BotUpdates:
    """``call`` runs a method that a webhook asks for in its answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inboxes: dict[str, Inbox] = {}
        self._last_ids: dict[str, int] = {}
        self._ended: list[BotWebhook] = []
        self.call: WebhookCall = lambda bot, call: None
        self.time_scale = 1.0
        self.records: deque[dict[str, Any]] = deque(maxlen=RECORDS_KEPT)
        self.table = (
            ("getUpdates", self.get_updates),
            ("setWebhook", self.set_webhook),
            ("deleteWebhook", self.delete_webhook),
            ("getWebhookInfo", self.get_webhook_info),
        )

    def publish(
        self, bot: Bot, kind: str, content: dict[str, Any], order: Hashable, lifetime: timedelta = DAY
    ) -> BotUpdate | None:
        inbox = self._inbox(bot)
        update = inbox.queue.push(kind, content, order, lifetime)
        self._last_ids[bot.token] = inbox.queue.last_id
        if update is not None and inbox.webhook is not None:
            inbox.webhook.push(update)
        inbox.changed.set()
        inbox.changed = asyncio.Event()
        return update

    async def wait(self, bot: Bot, params: Params) -> None:
        """Wait for an update or for the timeout of ``getUpdates``; errors if another request ends the wait."""
        inbox = self._inbox(bot)
        _allow(inbox.queue, params)
        timeout = min(max(params.integer("timeout") or 0, 0), LONGEST_POLL)
        if inbox.webhook is not None or not timeout or inbox.queue.read(*_page(params)):
            return
        self._end_poll(inbox, named("terminated_by_other_get_updates"))
        inbox.poll = ended = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                while not inbox.queue.read(*_page(params)):
                    await _first(inbox.changed, ended)
                    if ended.done():
                        raise ended.result()
        except TimeoutError:
            return
        finally:
            inbox.poll = None if inbox.poll is ended else inbox.poll

    def get_updates(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        inbox = self._inbox(bot)
        if inbox.webhook is not None:
            raise named("webhook_is_active")
        _allow(inbox.queue, params)
        return [update.shape for update in inbox.queue.read(*_page(params))]

    def set_webhook(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        if not params.text("url"):
            return self.delete_webhook(bot, params, call)
        inbox = self._inbox(bot)
        now = self._clock.monotonic_ns()
        if inbox.webhook_set_ns is not None and now - inbox.webhook_set_ns < SECOND:
            raise TelegramRateLimited(1)
        inbox.webhook_set_ns = now
        settings = read_settings(params)
        drop = params.flag("drop_pending_updates")
        if inbox.webhook is not None and inbox.webhook.settings == settings and not drop:
            _allow(inbox.queue, params)
            return Described(True, "Webhook is already set")
        refuse_address(settings.url)
        self._end_webhook(inbox)
        if drop:
            inbox.queue.clear()
        _allow(inbox.queue, params)
        self._end_poll(inbox, TelegramError(409, "Conflict: terminated by setWebhook request"))
        self._start_webhook(bot, inbox, settings)
        return Described(True, "Webhook was set")

    def delete_webhook(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        inbox = self._inbox(bot)
        was_set = inbox.webhook is not None
        self._end_webhook(inbox)
        if params.flag("drop_pending_updates"):
            inbox.queue.clear()
        return Described(True, "Webhook was deleted" if was_set else "Webhook is already deleted")

    def get_webhook_info(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        inbox = self._inbox(bot)
        webhook = inbox.webhook
        info: dict[str, Any] = {
            "url": webhook.settings.url if webhook else "",
            "has_custom_certificate": bool(webhook and webhook.settings.certificate),
            "pending_update_count": len(inbox.queue.waiting()),
        }
        if webhook and webhook.trouble:
            info |= {"last_error_date": webhook.trouble.date, "last_error_message": webhook.trouble.message}
        if webhook:
            info["max_connections"] = webhook.settings.max_connections
            info["ip_address"] = webhook.settings.ip_address or "<unknown>"
        if inbox.queue.allowed != DEFAULT_TYPES:
            info["allowed_updates"] = sorted(inbox.queue.allowed)
        return info

    def polling(self) -> list[str]:
        """Fingerprints of the bots whose ``getUpdates`` waits now."""
        return [fingerprint(token) for token, inbox in self._inboxes.items() if inbox.poll is not None]

    def clear(self) -> None:
        """Numbers go on, so that a bot that polls through it misses nothing."""
        for inbox in self._inboxes.values():
            self._end_webhook(inbox)
        self._inboxes.clear()
        self.records.clear()
        self.time_scale = 1.0

    async def close(self) -> None:
        self.clear()
        for webhook in self._ended:
            await webhook.close()

    def _inbox(self, bot: Bot) -> Inbox:
        inbox = self._inboxes.get(bot.token)
        if inbox is None:
            queue = UpdateQueue(self._clock, self._last_ids.get(bot.token, FIRST_ID))
            inbox = self._inboxes[bot.token] = Inbox(queue)
        if inbox.webhook is not None and inbox.webhook.is_over:
            self._end_webhook(inbox)
        return inbox

    def _start_webhook(self, bot: Bot, inbox: Inbox, settings: WebhookSettings) -> None:
        inbox.webhook = BotWebhook(
            settings,
            inbox.queue,
            self._clock,
            call=lambda call: self.call(bot, call),
            record=self.records.append,
            time_scale=lambda: self.time_scale,
        )
        for update in inbox.queue.waiting():
            inbox.webhook.push(update)

    def _end_webhook(self, inbox: Inbox) -> None:
        if inbox.webhook is not None:
            inbox.webhook.stop()
            self._ended.append(inbox.webhook)
            inbox.webhook = None

    def _end_poll(self, inbox: Inbox, error: TelegramError) -> None:
        if inbox.poll is not None and not inbox.poll.done():
            inbox.poll.set_result(error)


def _page(params: Params) -> tuple[int, int]:
    limit = params.integer("limit")
    return params.integer("offset") or 0, min(max(MOST_UPDATES if limit is None else limit, 1), MOST_UPDATES)


def _allow(queue: UpdateQueue, params: Params) -> None:
    """Kept until the bot names others; an empty list stands for the default, unknown names are ignored."""
    try:
        given = params.structure("allowed_updates") if params.text("allowed_updates") else None
    except msgspec.DecodeError:
        return
    if isinstance(given, list) or params.text("allowed_updates") == "[]":
        wanted = frozenset(str(name).lower() for name in given or ()) & TYPES
        queue.allowed = wanted or DEFAULT_TYPES


async def _first(event: asyncio.Event, future: asyncio.Future[Any]) -> None:
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((waiting, future), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
