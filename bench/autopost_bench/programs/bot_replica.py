"""A bot as it ships, without its HTTP API, whose platform accepts everything at once.

It says ``ready``, starts on ``go``, tells how many replies it has committed, and ends when its standard input does.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from autopost_adapters.base import AcceptedPart, Target
from autopost_bot.config import BotConfig
from autopost_bot.conversation.gateway import ConversationGateway, ReplyVerdict
from autopost_bot.conversation.pipeline import conversations
from autopost_bot.gateway import Gateway
from autopost_contracts.plan import Part
from autopost_runtime.lifecycle.service import Service, collect_seldom
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.secrets.credentials import Credentials

from autopost_bench.programs.replica import observe, say, standard_input

ENVIRONMENT = {"AUTOPOST_BENCH_TOKEN": "opens-nothing"}


class NoOp:
    async def send(self, part: Part, target: Target) -> AcceptedPart:
        return AcceptedPart(provider_ids=("1",))

    async def find(self, part: Part, target: Target, since: datetime, other_than: Collection[str]) -> None:
        return None

    async def answer(self, *_: Any, **__: Any) -> None:
        return None

    async def probe(self, *_: Any) -> None:
        return None


class CountingGateway(ConversationGateway):
    committed = 0

    async def commit_replies(self, outcomes: Sequence[dict[str, Any]]) -> list[ReplyVerdict]:
        verdicts = await super().commit_replies(outcomes)
        self.committed += len(verdicts)
        say(str(self.committed))
        return verdicts


async def live(url: str) -> None:
    config = BotConfig(database_url=url, nats_url=None, poll_interval=timedelta(milliseconds=100))
    service = Service("bot")
    observe(config, "bot")
    async with open_database(config, service) as database:
        say("ready")
        lines = await standard_input()
        if (await lines.readline()).strip() != b"go":
            return
        credentials = Credentials(Gateway(database), ENVIRONMENT)
        async with conversations(
            config,
            service,
            CountingGateway(database),
            adapters={"max": NoOp()},
            identities=credentials,
            tell=lambda *_: None,
        ):
            await lines.read()
        await service.end_tasks()


if __name__ == "__main__":
    import uvloop

    collect_seldom()
    with contextlib.suppress(BrokenPipeError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live(sys.argv[1]))
    os._exit(0)
