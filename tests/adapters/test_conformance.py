"""Every adapter passes the same table: what a platform may do to us, and what we make of it."""

from datetime import timedelta
from typing import Any

import pytest
from autopost_adapters.base import Accepted
from autopost_adapters.registry import adapters
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_contracts.payload import Button
from autopost_contracts.plan import TextPart
from autopost_runtime.http import HttpClient

from adapters.conftest import Platform


async def test_an_accepted_part_comes_back_with_its_id_and_is_shown_once(platform: Platform) -> None:
    part = TextPart(text="<b>bold</b> & plain", markup="html", buttons=((Button("Go", "https://example.org/"),),))

    answer = await platform.send(part)

    (message,) = await platform.shown()
    assert answer == Accepted(provider_ids=(str(message["id"]),))
    assert message["buttons"]


TRANSIENT, PERMANENT = Category.TRANSIENT, Category.PERMANENT
TABLE: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"status": 429, "retry_after": 7}, (TRANSIENT, Scope.PLATFORM, "rate_limited", 7000, False)),
    ({"catalogue": "too_long"}, (PERMANENT, Scope.DELIVERY, "message_too_long", None, False)),
    ({"catalogue": "no_chat"}, (PERMANENT, Scope.CHANNEL, "chat_not_found", None, False)),
    ({"catalogue": "bad_token"}, (PERMANENT, Scope.CHANNEL, "unauthorized", None, False)),
    ({"catalogue": "denied"}, (PERMANENT, Scope.CHANNEL, None, None, False)),
    ({"status": 500}, (TRANSIENT, Scope.PLATFORM, "http_500", None, True)),
    ({"html": 502}, (TRANSIENT, Scope.PLATFORM, "http_502", None, True)),
    ({"garbage": True}, (TRANSIENT, Scope.PLATFORM, "unreadable_answer", None, True)),
    ({"reset": "before"}, (TRANSIENT, Scope.PLATFORM, "reset", None, True)),
    ({"reset": "after"}, (TRANSIENT, Scope.PLATFORM, "reset", None, True)),
    ({"hang": True}, (TRANSIENT, Scope.PLATFORM, "read_timeout", None, True)),
]
WORDS = {
    "telegram": {
        "too_long": "message_is_too_long",
        "no_chat": "chat_not_found",
        "bad_token": "unauthorized",
        "denied": "bot_was_kicked",
    },
    "max": {
        "too_long": "text_too_long",
        "no_chat": "chat_not_found",
        "bad_token": "verify_token",
        "denied": "chat_denied",
    },
}
"""The same refusal in each platform's own words."""


@pytest.mark.parametrize(("effect", "expected"), TABLE, ids=[str(effect) for effect, _ in TABLE])
async def test_what_a_platform_does_to_us_is_an_outcome(
    platform: Platform, effect: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    if "catalogue" in effect:
        effect = {"catalogue": f"{platform.name}.{WORDS[platform.name][effect['catalogue']]}"}
    await platform.misbehave(**effect)

    answer = await platform.send()

    assert isinstance(answer, Failed)
    category, scope, code, retry_after_ms, ambiguous = expected
    assert (answer.category, answer.scope, answer.ambiguous) == (category, scope, ambiguous)
    assert answer.retry_after_ms == retry_after_ms
    assert code is None or answer.code == code


async def test_a_platform_that_cannot_be_reached_certainly_got_nothing(platform: Platform) -> None:
    async with HttpClient() as client:
        nowhere = "http://127.0.0.1:1"
        unreachable = adapters(client, telegram_url=nowhere, max_url=nowhere, timeout=timedelta(seconds=1))
        platform.adapter = unreachable[platform.name]

        answer = await platform.send()

    assert isinstance(answer, Failed)
    assert (answer.category, answer.code, answer.ambiguous) == (Category.TRANSIENT, "connect", False)


async def test_no_failure_shows_the_token(platform: Platform) -> None:
    canary = "7777777:canary-canary-canary-canary-canary"
    for effect in ({"html": 502}, {"garbage": True}, {"reset": "before"}, {"status": 429}):
        await platform.misbehave(**effect)

        assert canary not in repr(await platform.send(token=canary))
