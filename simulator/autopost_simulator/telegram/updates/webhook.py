"""Deliver updates to the webhook of a bot.

Updates of one chat arrive in order: the next is sent when the one before was answered with a status of 2xx. Chats do
not wait for each other. A failed update is sent again at once, then after 2, 4, 8 … seconds, up to a minute or two,
or after ``Retry-After``; status 410 for 23 hours ends the webhook. An answer may hold a method for the bot to call.
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from autopost_simulator.clock import Clock
from autopost_simulator.telegram.updates.update_queue import BotUpdate, UpdateQueue
from autopost_simulator.telegram.updates.webhook_settings import WebhookSettings

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105  the name of a header
LONGEST_PAUSE = 60
LONGEST_RETRY_AFTER = 3600
DROPPED_AFTER = 23 * 3600
TIMEOUT = 60.0
GONE = 410

Call = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class WebhookTrouble:
    date: int
    message: str


@dataclass(slots=True, frozen=True, kw_only=True)
class Answered:
    status: int | None
    error: str | None = None
    retry_after: int = 0
    call: dict[str, Any] | None = None

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class BotWebhook:
    """``call`` runs the method that an answer asks for; ``record`` gets one entry per attempt."""

    def __init__(
        self,
        settings: WebhookSettings,
        queue: UpdateQueue,
        clock: Clock,
        *,
        call: Call,
        record: Call,
        time_scale: Callable[[], float],
    ) -> None:
        self.settings = settings
        self.trouble: WebhookTrouble | None = None
        self.is_over = False
        self._queue = queue
        self._clock = clock
        self._call = call
        self._record = record
        self._time_scale = time_scale
        self._by_order: dict[Hashable, list[BotUpdate]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = asyncio.Semaphore(settings.max_connections)
        self._session: aiohttp.ClientSession | None = None
        self._gone_since: float | None = None

    def push(self, update: BotUpdate) -> None:
        waiting = self._by_order.setdefault(update.order, [])
        waiting.append(update)
        if len(waiting) == 1:
            task = asyncio.create_task(self._deliver(update.order))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def stop(self) -> list[asyncio.Task[None]]:
        self.is_over = True
        stopped = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in stopped:
            task.cancel()
        return stopped

    async def close(self) -> None:
        await asyncio.gather(*self.stop(), return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _deliver(self, order: Hashable) -> None:
        waiting = self._by_order[order]
        while waiting and not self.is_over:
            await self._deliver_update(waiting[0])
            waiting.pop(0)
        self._by_order.pop(order, None)

    async def _deliver_update(self, update: BotUpdate) -> None:
        attempt, pause = 1, 1.0
        while not self.is_over:
            async with self._connections:
                answered = await self._attempt(update, attempt)
            if answered.is_accepted:
                break
            wait = float(answered.retry_after)
            if attempt > 1 and not answered.retry_after:
                wait = pause = min(pause * 2, LONGEST_PAUSE * (1 + random.random()))  # noqa: S311  as the server
            if self._clock.now().timestamp() + wait > update.expires_at.timestamp() or self._is_gone(answered):
                break
            attempt += 1
            await asyncio.sleep(wait / self._time_scale())
        if not self.is_over:
            self._queue.forget(update)

    def _is_gone(self, answered: Answered) -> bool:
        now = self._clock.monotonic_ns() / 1e9
        self._gone_since = (self._gone_since or now) if answered.status == GONE else None
        self.is_over = self._gone_since is not None and now - self._gone_since > DROPPED_AFTER
        return self.is_over

    async def _attempt(self, update: BotUpdate, attempt: int) -> Answered:
        started = self._clock.monotonic_ns()
        answered = await self._post(update)
        self._record(
            {
                "url": self.settings.url,
                "update_id": update.id,
                "update_type": next(iter(update.content)),
                "attempt": attempt,
                "status": answered.status,
                "error": answered.error,
                "started_ns": started,
                "ended_ns": self._clock.monotonic_ns(),
            }
        )
        if answered.error is not None:
            self.trouble = WebhookTrouble(int(self._clock.now().timestamp()), answered.error)
        elif answered.call is not None:
            self._call(answered.call)
        return answered

    async def _post(self, update: BotUpdate) -> Answered:
        try:
            async with self._client().post(
                self.settings.url,
                json=update.shape,
                headers={SECRET_HEADER: self.settings.secret_token} if self.settings.secret_token else {},
                timeout=aiohttp.ClientTimeout(total=TIMEOUT),
                allow_redirects=False,
            ) as response:
                return await _read(response)
        except aiohttp.ClientConnectorCertificateError:
            return Answered(status=None, error="SSL error {error:0A000086:SSL routines::certificate verify failed}")
        except (aiohttp.ClientError, TimeoutError) as error:
            return Answered(status=None, error=f"Connection failed: {type(error).__name__}")

    def _client(self) -> aiohttp.ClientSession:
        """A new connection per call: a closed idle connection would look like a failure."""
        if self._session is None:
            trusted = self.settings.certificate
            context = ssl.create_default_context(cadata=trusted) if trusted else True
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, ssl=context))
        return self._session


async def _read(response: aiohttp.ClientResponse) -> Answered:
    body = await response.read()
    if 200 <= response.status < 300:
        return Answered(status=response.status, call=_call_in(response, body))
    retry_after = response.headers.get("Retry-After", "")
    seconds = min(int(retry_after), LONGEST_RETRY_AFTER) if retry_after.isdigit() else 0
    error = f"Wrong response from the webhook: {response.status} {response.reason}"
    return Answered(status=response.status, error=error, retry_after=seconds)


def _call_in(response: aiohttp.ClientResponse, body: bytes) -> dict[str, Any] | None:
    """Methods that return something are not called, because nobody would see it."""
    if response.content_type != "application/json":
        return None
    try:
        call: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    method = str(call.get("method", "")).lower()
    useless = not method or method in ("deletewebhook", "setwebhook", "close", "logout") or method.startswith("get")
    return None if useless else call
