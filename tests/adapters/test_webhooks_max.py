"""What only a bot needs of MAX: buttons and their answers, dialogs by person, subscriptions."""

from typing import Any

import pytest
from aiohttp import web
from autopost_adapters.base import AcceptedPart, Target
from autopost_adapters.max.send import MaxAdapter
from autopost_contracts.outcomes import Category, Failed
from autopost_contracts.payload import Button
from autopost_contracts.plan import TextPart
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient

from adapters.conftest import PATIENT, Simulated
from adapters.max_parts import serving

PERSON = 9
HOOK = "https://shop.example/v1/bot/max"
SECRET = Secret("canary-hook-secret")
CHOOSE = TextPart(
    text="choose",
    buttons=(
        (Button("Доставка", kind="say"), Button("M", payload="size.1.t.M", kind="callback")),
        (Button("Site", "https://a.example/"),),
    ),
)


def adapter(max_: Simulated) -> MaxAdapter:
    assert isinstance(max_.adapter, MaxAdapter)
    return max_.adapter


async def control(max_: Simulated, path: str, body: dict[str, Any]) -> Any:
    response = await max_.http.post(f"{max_.url}/_sim/{path}", json=body)
    response.raise_for_status()
    return response.json()


async def press(max_: Simulated, button: str) -> str:
    """The callback of a press on this button of a message in the dialog with the person."""
    token = {"token": max_.target.token.reveal()}
    await control(max_, f"max/customers/{PERSON}/start", token)
    sent = await max_.adapter.send(CHOOSE, Target(chat=f"user:{PERSON}", token=max_.target.token))
    assert isinstance(sent, AcceptedPart)
    told = await control(max_, f"max/customers/{PERSON}/press", {"message_id": sent.provider_ids[0], "button": button})
    callback: str = told["update"]["callback"]["callback_id"]
    return callback


async def test_each_kind_of_button_is_shown_as_max_names_it(max_: Simulated) -> None:
    await max_.send(CHOOSE)

    [post] = await max_.posts()

    assert post["buttons"][0]["payload"]["buttons"] == [
        [
            {"type": "message", "text": "Доставка"},
            {"type": "callback", "text": "M", "payload": "size.1.t.M", "intent": "default"},
        ],
        [{"type": "link", "text": "Site", "url": "https://a.example/"}],
    ]


async def test_a_person_whose_chat_is_not_known_is_addressed_by_number(max_: Simulated) -> None:
    update = await control(max_, f"max/customers/{PERSON}/start", {"token": max_.target.token.reveal()})
    dialog = update["update"]["chat_id"]

    sent = await max_.adapter.send(TextPart(text="hello"), Target(chat=f"user:{PERSON}", token=max_.target.token))

    assert isinstance(sent, AcceptedPart)
    shown = await max_.http.get(f"{max_.url}/_sim/chats/max/{dialog}/messages")
    assert [post["text"] for post in shown.json()["messages"]] == ["hello"]


async def test_a_pressed_button_is_answered_with_a_notification_and_loses_its_message_s_buttons(
    max_: Simulated,
) -> None:
    callback = await press(max_, "M")

    failed = await adapter(max_).answer(
        callback, max_.target.token, notification="Эта кнопка уже не действует.", remove_buttons=True
    )

    assert failed is None
    [told] = (await max_.http.get(f"{max_.url}/_sim/max/callbacks")).json()["callbacks"]
    assert (told["answers"], told["notification"]) == (1, "Эта кнопка уже не действует.")
    chats = (await max_.http.get(f"{max_.url}/_sim/chats?posts=1")).json()["chats"]
    [post] = [post for chat in chats for post in chat["posts"] if post["text"] == "choose"]
    assert post["buttons"] == []


async def test_success_false_is_a_failure_that_is_certain(max_: Simulated) -> None:
    answered = await adapter(max_).answer("none", max_.target.token, notification="x")
    removed = await adapter(max_).unsubscribe(max_.target.token, HOOK)

    for failed in (answered, removed):
        assert failed is not None
        assert (failed.category, failed.code, failed.ambiguous) == (Category.PERMANENT, "refused", False)
        assert "not found" in failed.message


@pytest.mark.parametrize("effect", [{"status": 502}, {"reset": "after"}, {"garbage": True}])
async def test_an_answer_that_is_lost_is_certain_all_the_same(max_: Simulated, effect: dict[str, Any]) -> None:
    """It posts nothing, so there is nothing to look for."""
    callback = await press(max_, "M")
    await max_.misbehave(**effect)

    failed = await adapter(max_).answer(callback, max_.target.token, notification="x")

    assert isinstance(failed, Failed)
    assert not failed.ambiguous


async def test_a_webhook_is_subscribed_listed_and_removed(max_: Simulated) -> None:
    bot, token = adapter(max_), max_.target.token

    assert await bot.subscribe(token, HOOK, ["message_created", "bot_started"], SECRET) is None
    listed = await bot.subscriptions(token)
    assert await bot.unsubscribe(token, HOOK) is None

    assert not isinstance(listed, Failed)
    assert [(one.url, one.update_types) for one in listed] == [(HOOK, ["message_created", "bot_started"])]
    assert await bot.subscriptions(token) == ()


async def test_the_secret_of_a_webhook_is_in_no_failure() -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.Response(status=400, text=await request.text())

    async with serving(echo) as url, HttpClient() as client:
        failed = await MaxAdapter(client, url, PATIENT, PATIENT).subscribe(Secret("t"), HOOK, [], SECRET)

    assert isinstance(failed, Failed)
    assert SECRET.reveal() not in repr(failed)
