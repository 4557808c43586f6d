"""Buttons under a question, pressed in the simulated MAX: each press is answered, and only a current one is taken."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from bot.support.answering import PLENTY, Shop, configured, running_bot
from harness.databases import Database
from harness.eventually import eventually

ANN = 9
STALE = "This button works no more."
BUTTONS = json.dumps([[{"text": "S", "callback": True}, {"text": "M", "callback": True}]])


class Presser:
    """Ann, who has been asked for her size."""

    def __init__(self, shop: Shop, chat: str) -> None:
        self.shop, self.chat = shop, chat
        self.mid = ""
        self.turns = 0

    async def asked(self) -> None:
        await self.shop.bot.arrive(self.chat, text="size")
        await self.handled(1)
        self.mid = (await self.shop.bot.reply(self.chat))["provider_message_id"]

    async def handled(self, updates: int) -> None:
        self.turns += updates
        await self.shop.settle(self.turns)

    async def press(self, button: str, mid: str | None = None, *, store: bool = True) -> dict[str, Any]:
        url = f"{self.shop.simulator}/_sim/max/customers/{ANN}/press"
        answer = await self.shop.http.post(url, json={"message_id": mid or self.mid, "button": button})
        update: dict[str, Any] = answer.json()["update"]
        if store:
            await self.store(update)
        return update

    async def store(self, update: dict[str, Any], **fields: Any) -> None:
        """As the webhook does."""
        callback = update["callback"]
        key = f"cb:{callback['callback_id']}:{callback['timestamp']}"
        given = {"key": key, "kind": "message_callback", "body": update, **fields}
        await self.shop.bot.arrive(self.chat, **given)

    async def answered(self, count: int) -> list[str]:
        """The notices that she was shown, when so many presses are answered. The presses on a keyboard have one id."""

        async def are_answered() -> bool:
            return sum(one["answers"] for one in await self._presses()) >= count

        await eventually(are_answered, within=PLENTY)
        return [one["notification"] for one in await self._presses() if one["notification"]]

    async def _presses(self) -> list[dict[str, Any]]:
        answer = await self.shop.http.get(f"{self.shop.simulator}/_sim/max/callbacks")
        found: list[dict[str, Any]] = answer.json()["callbacks"]
        return found

    async def said(self) -> list[str]:
        """Without the questions again that lost their buttons."""
        return [text for text in await self.shop.said(self.chat) if text is not None]

    async def outcomes(self) -> list[str]:
        return [line["meta"]["outcome"] for line in await self.shop.bot.logs()]

    async def calls(self) -> int:
        return [line["method"] for line in await self.shop.log()].count("POST /answers")


@pytest.fixture
async def ann(database: Database, shop: Shop) -> AsyncIterator[Presser]:
    [chat] = await shop.open()
    await shop.rule("size", "Which size?", buttons=BUTTONS, next_state="size")
    options = json.dumps({"mode": "choice", "options": ["S", "M"]})
    taking = {"state": "size", "capture": "size", "next_state": "colour", "pattern": options, "buttons": BUTTONS}
    await shop.rule("take", "Size {{ size }}. Which colour?", **taking)
    await shop.rule("end", "Done.", "any", state="colour", next_state="default")
    await shop.db.execute(
        "UPDATE bot_settings SET texts = $1", json.dumps({"stale_button": STALE, "escalate": "Ask a person."})
    )
    presser = Presser(shop, chat)
    quick = {"bot_provider_timeout": timedelta(seconds=1), "bot_lease": timedelta(seconds=5)}
    async with running_bot(configured(database.url, shop.simulator, **quick)):
        await presser.asked()
        yield presser


async def test_a_press_is_answered_and_takes_the_buttons_away(ann: Presser) -> None:
    await ann.press("M")
    await ann.handled(1)

    assert await ann.answered(1) == []
    assert await ann.said() == ["Which size?", "Size M. Which colour?"]
    removed = [line for line in await ann.shop.log() if line["method"] == "POST /answers"]
    assert (len(removed), removed[0]["verdict"]) == (1, "accepted")


async def test_a_double_tap_is_taken_once_and_told_so_once(ann: Presser) -> None:
    await ann.press("S")
    await ann.press("M")  # the keyboard is still on the screen of the phone
    await ann.handled(2)

    assert (await ann.outcomes())[1:] == ["captured", "stale"]
    assert await ann.answered(2) == [STALE]
    assert await ann.said() == ["Which size?", "Size S. Which colour?"]
    assert await ann.calls() == 2


async def test_a_repeated_webhook_of_one_press_is_one_press(ann: Presser) -> None:
    update = await ann.press("S", store=False)
    await ann.store(update)
    with pytest.raises(AssertionError):
        await ann.store(update)  # a duplicate: nothing is stored
    await ann.handled(1)

    assert (await ann.outcomes())[1:] == ["captured"]
    await ann.answered(1)
    assert await ann.calls() == 1


async def test_a_button_of_an_earlier_question_is_told_so_and_changes_nothing(ann: Presser) -> None:
    earlier = await ann.press("M", store=False)
    await ann.shop.bot.arrive(ann.chat, text="S")
    await ann.handled(1)
    await ann.store(earlier)
    await ann.handled(1)

    assert (await ann.outcomes())[1:] == ["captured", "stale"]
    assert await ann.answered(1) == [STALE]
    state = await ann.shop.db.fetchrow("SELECT state, context FROM bot_state WHERE chat_id = $1", ann.chat)
    assert state is not None
    assert (state["state"], json.loads(state["context"])["size"]) == ("colour", "S")


async def test_presses_that_come_in_the_wrong_order_are_taken_as_they_came(ann: Presser) -> None:
    """The first press comes after the second one was handled: that moved the conversation on."""
    first = await ann.press("S", store=False)
    second = await ann.press("M", store=False)
    now = second["callback"]["timestamp"]
    await ann.store(second, ms=1_700_000_100_000)
    await ann.handled(1)
    await ann.store({**first, "callback": {**first["callback"], "timestamp": now - 50}}, ms=1_700_000_099_950)
    await ann.handled(1)

    assert (await ann.outcomes())[1:] == ["captured", "stale"]
    assert (await ann.said())[-1] == "Size M. Which colour?"
    assert await ann.answered(2) == [STALE]


@pytest.mark.parametrize("payload", ["", "order-17", "size.1.2", "a.b.c.d"])
async def test_a_button_that_is_not_ours_is_neither_answered_nor_taken(ann: Presser, payload: str) -> None:
    update = await ann.press("S", store=False)
    await ann.store({**update, "callback": {**update["callback"], "payload": payload}})
    await ann.handled(1)
    await ann.shop.bot.arrive(ann.chat, text="S")
    await ann.handled(1)

    assert (await ann.outcomes())[1:] == ["ignored", "captured"]
    assert await ann.calls() == 0


async def test_a_keyboard_of_another_workspace_is_stale_here(ann: Presser) -> None:
    """Rules may have the same ids there; the question has not."""
    update = await ann.press("S", store=False)
    rule, version, token, number = update["callback"]["payload"].rsplit(".", 3)
    foreign = f"{rule}.{version}.{token[::-1]}.{number}"
    await ann.store({**update, "callback": {**update["callback"], "payload": foreign}})
    await ann.handled(1)

    assert (await ann.outcomes())[1:] == ["stale"]
    assert await ann.answered(1) == [STALE]


@pytest.mark.parametrize("effect", [{"status": 500}, {"hang": True}, {"status": 429, "retry_after": 60}])
async def test_a_press_that_cannot_be_answered_holds_up_nothing(ann: Presser, effect: dict[str, Any]) -> None:
    await ann.shop.control("faults", {"method": "POST /answers", "times": 1, "effect": effect})

    await ann.press("M")
    await ann.handled(1)
    await ann.shop.bot.arrive(ann.chat, text="red")
    await ann.handled(1)

    assert (await ann.said())[1:] == ["Size M. Which colour?", "Done."]
    await eventually(lambda: _called(ann), within=timedelta(seconds=10))


async def _called(ann: Presser) -> bool:
    return await ann.calls() == 1
