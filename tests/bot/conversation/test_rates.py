"""Replies and posts of one token at once: the platform counts them together, and so do we."""

from collections import Counter, defaultdict
from datetime import timedelta
from typing import Any

import pytest
from autopost_contracts.plan import Plan, TextPart
from bot.support.answering import TOKEN, Shop, configured, running_bot
from dispatcher.support import running_dispatcher as dispatchers
from harness.buckets import Bucket
from harness.databases import Database
from harness.full import FULL

pytestmark = pytest.mark.time_limit(180)

CHATS = 200 if FULL else 60
POSTS = 400 if FULL else 60


async def test_two_hundred_chats_write_while_posts_run_with_the_same_token(
    database: Database, shop: Shop, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """27 calls a second of a token that may make 30, 1.8 into a chat that takes 2: the platform refuses none."""
    chats = await shop.open(CHATS, limits=[{"count": 2, "per": 1}])
    await shop.limit_token(30)
    await shop.rule("ping", "pong")
    await shop.db.execute("UPDATE bot_settings SET chat_rps = 1.8")
    await shop.bot.tenant.group(27, "bot", "max")
    channels = [str(-70_000 - number) for number in range(30)]
    await shop.control("chats", [{"platform": "max", "id": int(one), "limits": []} for one in channels])
    for channel in channels:
        await shop.bot.tenant.channel(platform="max", target_id=channel, rate_rps=None)
    posts = dispatchers.RunningDispatchers(shop.bot.tenant, shop.simulator, shop.http, s3)
    for number in range(POSTS // 30):
        await posts.enqueue(Plan(version=2, platform="max", parts=(TextPart(text=f"post {number}"),)))
    monkeypatch.setitem(dispatchers.ENVIRONMENT, "TOKEN", TOKEN)

    sending = dispatchers.configured(database.url, shop.simulator)
    answering = configured(database.url, shop.simulator)
    async with dispatchers.running_dispatcher(sending), running_bot(answering), running_bot(answering):
        for chat in chats:
            await shop.bot.arrive(chat, text="ping")
            await shop.bot.arrive(chat, text="ping")
        await shop.settle(2 * CHATS, within=timedelta(minutes=2))
        assert await posts.settled() == {"sent": POSTS // 30 * 30}

    lines = await shop.log()
    assert Counter(line["verdict"] for line in lines if line["method"] == "POST /messages").keys() == {"accepted"}
    assert most_in_a_second(lines) <= 30
    assert 0.35 <= share_of_posts_while_both_wait(lines, set(channels)) <= 0.65
    assert len([line for line in lines if line["message_ids"]]) == 2 * CHATS + POSTS // 30 * 30
    by_chat: dict[str, list[Any]] = defaultdict(list)
    for line in lines:
        by_chat[line["chat"]].append(line)
    assert max(map(most_in_a_second, (by_chat[chat] for chat in chats))) <= 2


def share_of_posts_while_both_wait(lines: list[Any], channels: set[str]) -> float:
    """Slots go in turns: neither waits until the other has nothing left."""
    ordered = sorted((line for line in lines if line["message_ids"]), key=lambda line: line["arrived_ns"])
    are_posts = [str(line["chat"]) in channels for line in ordered]
    last = min(len(are_posts) - are_posts[::-1].index(kind) for kind in (True, False))
    return sum(are_posts[:last]) / last


def most_in_a_second(lines: list[Any]) -> int:
    times = sorted(line["arrived_ns"] for line in lines if line["message_ids"])
    first, most = 0, 0
    for last, at in enumerate(times):
        while times[first] <= at - 1_000_000_000:
            first += 1
        most = max(most, last - first + 1)
    return most
