"""The bot looks into its inbox again, whatever the last look met."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest
from autopost_bot.gateway import BotCounts
from autopost_bot.inbox import Inbox
from autopost_contracts.ids import WorkspaceId
from autopost_runtime.telemetry import metrics
from harness.eventually import eventually

GAUGES = ("autopost_bot_unanswered", "autopost_bot_replies_unsent", "autopost_bot_chats{")
SHOWN = [
    "autopost_bot_unanswered 7.0",
    "autopost_bot_replies_unsent 2.0",
    'autopost_bot_chats{state="waiting"} 4.0',
    'autopost_bot_chats{state="held"} 0.0',
    'autopost_bot_chats{state="stopped"} 10.0',
]


def shown() -> list[str]:
    """One series each, however many workspaces there are."""
    lines = metrics.render().decode().splitlines()
    return [line for line in lines if line.startswith(GAUGES)]


@pytest.mark.parametrize(
    "exc",
    [asyncpg.NumericValueOutOfRangeError("a row"), KeyError("a mistake of ours"), ConnectionResetError()],
    ids=lambda exc: type(exc).__name__,
)
async def test_a_failed_read_is_retried(exc: Exception) -> None:
    counts = [BotCounts(WorkspaceId(uuid4()), count, datetime.now(UTC), 1, 2, 0, 5) for count in (3, 4)]

    class Database:
        looks = 0

        async def bot_counts(self) -> list[BotCounts]:
            self.looks += 1
            if self.looks == 1:
                raise exc
            return counts

    database = Database()
    inbox = Inbox(database, timedelta(milliseconds=1))  # type: ignore[arg-type]
    running = asyncio.create_task(inbox.run())

    await eventually(lambda: shown() == SHOWN)
    is_running = not running.done()
    running.cancel()

    assert is_running
