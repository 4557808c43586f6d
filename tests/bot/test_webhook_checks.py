"""Of many bots whose webhooks are checked, one that makes trouble costs no other its check."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
from autopost_adapters.max.webhooks import WebhookSubscription
from autopost_bot.gateway import WebhookCheck
from autopost_bot.webhook_checks import WebhookChecks
from autopost_contracts.ids import WorkspaceId
from autopost_runtime.config.load import Secret

BOTS = [WorkspaceId(UUID(int=number)) for number in range(1, 6)]
UNREADABLE, UNSTORABLE, WITHOUT_TOKEN = BOTS[0], BOTS[1], BOTS[2]


class Bots:
    """Gateway, tokens and platform in one: two checks at once, the first ones fail."""

    def __init__(self) -> None:
        self.due = [WebhookCheck(one, "max", "bot") for one in BOTS]
        self.noted: list[UUID] = []

    async def take_webhook_checks(self, older: timedelta, limit: int) -> list[WebhookCheck]:
        taken, self.due = self.due[:2], self.due[2:]
        return taken

    async def token(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Secret | None:
        if workspace == WITHOUT_TOKEN:
            raise OSError("no such file")
        return Secret(str(workspace))

    async def subscriptions(self, token: Secret) -> Sequence[WebhookSubscription]:
        if token.reveal() == str(UNREADABLE):
            raise KeyError("a mistake of ours")
        return [WebhookSubscription("https://shop.example")]

    async def note_webhooks(self, workspace: WorkspaceId, subscriptions: list[dict[str, Any]]) -> bool:
        if workspace == UNSTORABLE:
            raise asyncpg.UntranslatableCharacterError("NUL")
        self.noted.append(workspace)
        return True


async def test_a_bot_whose_check_fails_costs_no_other_its_own() -> None:
    bots = Bots()

    await WebhookChecks(bots, bots, bots, timedelta(minutes=10)).check_due()  # type: ignore[arg-type]

    assert bots.noted == BOTS[3:]
