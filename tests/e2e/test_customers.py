"""Customers in the simulated MAX, from the webhook to the answer in their chat."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from autopost_cli.development import TOKENS
from harness.autopost_command import Autopost
from harness.eventually import eventually

from e2e.conftest import StartSystem
from e2e.system import System

pytestmark = pytest.mark.time_limit(300)

TOKEN = TOKENS["AUTOPOST_DEMO_MAX_TOKEN"]
PATIENCE = timedelta(seconds=30)
QUESTIONS = {"сколько стоит доставка?": "Доставляем", "как оплатить?": "Принимаем карты", "какая гарантия?": "Гарантия"}
NEIGHBOUR, GROUP = 77, -500500
FLOOD = "Получили ваши сообщения, ответим чуть позже."
ANSWERED = 5
"""Of one chat in a minute."""


class Person:
    def __init__(self, system: System, user_id: int) -> None:
        self._system = system
        self._user_id = user_id
        self.chat = 0

    async def does(self, deed: str, **fields: Any) -> dict[str, Any]:
        url = f"{self._system.places['simulator']}/_sim/max/customers/{self._user_id}/{deed}"
        response = await self._system.http.post(url, json=({} if deed == "press" else {"token": TOKEN}) | fields)
        response.raise_for_status()
        update: dict[str, Any] = response.json()["update"]
        self.chat = update.get("chat_id") or (update.get("message") or {}).get("recipient", {}).get(
            "chat_id", self.chat
        )
        return update

    async def calls(self) -> list[dict[str, Any]]:
        """Messages that the bot sent into the chat, as the simulator accepted them."""
        return [call for call in await self._system.accepted() if call["chat"] == str(self.chat)]

    async def answers(self, count: int) -> list[str]:
        async def arrived() -> list[str] | None:
            texts = [call["text"] for call in await self.calls()]
            return texts if len(texts) >= count else None

        return await eventually(arrived, PATIENCE)


async def handled(system: System) -> None:
    """Every update is done and every answer is sent."""
    open_work = (
        "SELECT NOT EXISTS (SELECT 1 FROM bot_inbox WHERE processed_at IS NULL) "
        "AND NOT EXISTS (SELECT 1 FROM bot_outbox WHERE sent_at IS NULL AND failed_at IS NULL)"
    )
    await eventually(lambda: system.database.fetchval(open_work), PATIENCE)


async def test_whoever_writes_in_the_page_is_answered_within_a_second(start_system: StartSystem) -> None:
    """`make run` subscribed the bot; nothing else was done."""
    system = await start_system()
    ann = Person(system, 9)
    await ann.does("start")
    await ann.answers(1)

    for number, (question, answer) in enumerate(QUESTIONS.items(), start=2):
        await ann.does("write", text=question)
        assert answer in (await ann.answers(number))[-1]

    await handled(system)
    seconds = await system.database.fetch(
        "SELECT extract(epoch FROM b.sent_at - i.ts)::float8 AS took FROM bot_inbox i JOIN bot_outbox b "
        "ON b.chat_id = i.chat_id AND b.inbound_provider_message_id = i.provider_message_id"
    )
    assert sorted(row["took"] for row in seconds)[len(seconds) // 2] < 1


async def test_customers_are_answered_once_and_in_order_however_webhooks_come(start_system: StartSystem) -> None:
    """Five copies of each update, many calls at once; a neighbour bot and a flood beside them."""
    system = await start_system()
    await system.database.execute("UPDATE workspace_endpoints SET ingress_rps = NULL")  # copies count
    await system.database.execute("UPDATE bot_settings SET chat_per_minute = $1", ANSWERED)
    await system.control("max/settings", {"webhook_parallel": 20, "webhook_copies": 5})
    people = [Person(system, 100 + number) for number in range(5)]
    await asyncio.gather(*(one.does("start") for one in people))
    neighbour = Person(system, NEIGHBOUR)
    await neighbour.does("add_bot", chat_id=GROUP, type="chat")

    async def talk(one: Person) -> None:
        await one.answers(1)
        for number, question in enumerate(QUESTIONS, start=2):
            await one.does("write", text=question)
            await one.answers(number)

    async def flood(one: Person) -> None:
        for number in range(60):
            await one.does("write", text=f"доставка {number}")

    async def chatter() -> None:
        for number in range(20):
            await neighbour.does("write", chat_id=GROUP, text=f"доставка {number}", is_bot=True)

    flooding = Person(system, 500)
    await asyncio.gather(*map(talk, people), flood(flooding), chatter())
    await handled(system)

    for one in people:
        texts = await one.answers(len(QUESTIONS) + 1)
        assert len(texts) == len(QUESTIONS) + 1
        assert all(answer in text for answer, text in zip(QUESTIONS.values(), texts[1:], strict=True))
    assert await neighbour.calls() == []
    deliveries = (await system.http.get(f"{system.places['simulator']}/_sim/max/deliveries")).json()["deliveries"]
    assert {one["status"] for one in deliveries} == {200}
    reasons = await system.database.fetch("SELECT ignored, count(*) FROM bot_inbox GROUP BY ignored")
    found = {row["ignored"]: row["count"] for row in reasons}
    assert (found["chat_flood"], found["bot_sender"]) == (60 - ANSWERED, 20)
    assert [call["text"] for call in await flooding.calls()][-1] == FLOOD
    verified = await Autopost(system.places["database_url"])("verify", "--no-stream", "--json")
    assert (verified.code, verified.json["differences"]) == (0, [])
    assert verified.json["checked"]["turns"] >= len(people) * len(QUESTIONS)
