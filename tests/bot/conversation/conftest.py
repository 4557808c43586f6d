"""A shop whose bot answers."""

import json
from collections.abc import AsyncIterator

import pytest
from autopost_simulator import Simulator, listening
from bot.support.answering import TEXTS, Shop
from db.support.bots import Bot
from db.support.builders import Tenant
from harness.databases import Database
from harness.http_client import http_client


@pytest.fixture
async def shop(database: Database) -> AsyncIterator[Shop]:
    bot = await Bot.create(await Tenant.create(database.pool))
    async with listening(Simulator(open_to_all=True)) as simulator, http_client(timeout=30) as http:
        made = Shop(bot, simulator, http)
        await bot.db.execute("UPDATE bot_settings SET texts = $1", json.dumps(TEXTS))
        yield made
