"""Ask MAX every few minutes where it sends the updates of each bot to, and record the answer.

MAX unsubscribes a webhook that fails for eight hours. Then no update comes, and nothing else would tell.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from autopost_adapters.max.webhooks import WebhookSubscription
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed
from autopost_runtime.config.load import Secret
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from msgspec import to_builtins

from autopost_bot.gateway import Gateway, WebhookCheck

AT_ONCE = 20
LOOKS = 10
"""Looks for due checks within their interval."""

checks_total = metrics.counter("autopost_bot_webhook_checks_total", "Questions to MAX where it sends updates to.")


class Tokens(Protocol):
    async def token(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Secret | None: ...


class WebhookPlatform(Protocol):
    async def subscriptions(self, token: Secret) -> Sequence[WebhookSubscription] | Failed: ...


class WebhookChecks:
    def __init__(self, gateway: Gateway, tokens: Tokens, platform: WebhookPlatform, interval: timedelta) -> None:
        self._gateway = gateway
        self._tokens = tokens
        self._platform = platform
        self._interval = interval

    async def run(self) -> None:
        while True:
            try:
                await self.check_due()
            except Exception as exc:
                get_logger().warning(
                    "webhooks.unchecked", exc_info=None if is_retryable(exc) else exc, error=type(exc).__name__
                )
            await asyncio.sleep((self._interval / LOOKS).total_seconds())

    async def check_due(self) -> None:
        while due := await self._gateway.take_webhook_checks(self._interval, AT_ONCE):
            await asyncio.gather(*map(self._try, due))

    async def _try(self, check: WebhookCheck) -> None:
        """A check that fails costs no other bot its own."""
        try:
            await self._check(check)
        except Exception as exc:
            checks_total.add(1, {"result": "failed"})
            get_logger().warning(
                "webhook.unknown",
                exc_info=None if is_retryable(exc) else exc,
                workspace_id=str(check.workspace_id),
                error=type(exc).__name__,
            )

    async def _check(self, check: WebhookCheck) -> None:
        """A bot that cannot be asked is asked again after the interval; what was known of it stays."""
        token = await self._tokens.token(check.workspace_id, check.provider, check.auth_ref)
        if token is None:
            checks_total.add(1, {"result": "no_token"})
            return
        found = await self._platform.subscriptions(token)
        if isinstance(found, Failed):
            checks_total.add(1, {"result": "failed"})
            get_logger().warning("webhook.unknown", workspace_id=str(check.workspace_id), code=found.code)
            return
        is_subscribed = await self._gateway.note_webhooks(check.workspace_id, to_builtins(found))
        checks_total.add(1, {"result": "subscribed" if is_subscribed else "lost"})
        if not is_subscribed:
            get_logger().warning("webhook.lost", workspace_id=str(check.workspace_id))
