"""What a platform may do to a delivery on its way, with everything real but the platform."""

from datetime import timedelta

import pytest
from autopost_contracts.plan import MediaPart, Plan, PlannedMedia, TextPart
from dispatcher.support.running_dispatcher import TOKENS, RunningDispatchers, configured, running_dispatcher
from harness.databases import Database
from harness.eventually import eventually
from harness.telegram_media import png

IMPATIENT = {"provider_timeout": timedelta(seconds=4), "sending_lease": timedelta(seconds=40)}
PLENTY = timedelta(seconds=30)


async def picture(stage: RunningDispatchers) -> PlannedMedia:
    return PlannedMedia(type="image", blob_ref=await stage.store(png(), "image/png"), content_type="image/png")


def plan(platform: str, *parts: TextPart | MediaPart) -> Plan:
    return Plan(version=2, platform=platform, parts=parts)


async def hurry(stage: RunningDispatchers) -> None:
    """No waiting for what is to be tried again."""
    await stage.tenant.db.execute(
        "UPDATE deliveries SET next_retry_at = now() WHERE status = 'retry' AND next_retry_at < 'infinity'"
    )


@pytest.mark.parametrize("answer", [{"hang": True, "accept": True}, {"hang": True}], ids=["arrived", "did not arrive"])
async def test_an_ambiguous_call_leads_to_one_message_if_the_platform_can_be_searched(
    database: Database, stage: RunningDispatchers, answer: dict[str, bool]
) -> None:
    [chat] = await stage.channels("max", 1, on_ambiguous="verify")
    await stage.control("faults", {"method": "POST /messages", "chat": int(chat), "times": 1, "effect": answer})
    part = TextPart(text="<b>Hello</b> &amp; welcome", markup="html")
    await stage.enqueue(plan("max", part))

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket, **IMPATIENT)):
        await eventually(lambda: _is(stage, "retry"), within=PLENTY)
        await hurry(stage)
        assert await stage.settled() == {"sent": 1}

    [accepted] = await stage.accepted()
    assert (await stage.tenant.only_delivery())["provider_message_id"] == accepted["message_ids"][0]
    assert [line["method"] for line in await stage.log()].count("GET /messages") == 1


async def test_an_ambiguous_call_is_held_if_the_platform_cannot_be_searched(
    database: Database, stage: RunningDispatchers
) -> None:
    [chat] = await stage.channels("telegram", 1, on_ambiguous="verify")
    await stage.control("faults", {"chat": int(chat), "times": 1, "effect": {"hang": True, "accept": True}})
    await stage.enqueue(plan("telegram", TextPart(text="once")))

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket, **IMPATIENT)):
        await eventually(lambda: _is(stage, "retry"), within=PLENTY)
        await hurry(stage)

        async def held() -> bool:
            return (await stage.tenant.only_delivery())["hold_reason"] is not None

        await eventually(held, within=PLENTY)

    assert len(await stage.log()) == 1


@pytest.mark.parametrize("platform", ["telegram", "max"])
async def test_an_id_that_the_platform_no_longer_knows_is_replaced_within_the_attempt(
    database: Database, stage: RunningDispatchers, platform: str
) -> None:
    await stage.channels(platform, 1)
    item = await picture(stage)
    await stage.enqueue(plan(platform, MediaPart(media=(item,))))
    config = configured(database.url, stage.simulator, stage.bucket)
    async with running_dispatcher(config):
        await stage.settled()
    await stage.tenant.db.execute("UPDATE media_blobs SET file_id = left(file_id, -4) || 'abcd'")
    await stage.enqueue(plan(platform, TextPart(text="first"), MediaPart(media=(item,))))

    async with running_dispatcher(config):
        assert await stage.settled() == {"sent": 2}

    assert [row["attempt"] for row in await stage.tenant.deliveries()] == [1, 1]
    assert sum(line["uploads"] for line in await stage.log()) == 2
    assert [line["text"] for line in await stage.accepted()].count("first") == 1


async def test_a_file_that_max_is_still_working_on_needs_no_second_attempt(
    database: Database, stage: RunningDispatchers
) -> None:
    await stage.channels("max", 1)
    await stage.control("max/settings", {"processing": {"image": 2.5}})
    await stage.enqueue(plan("max", MediaPart(media=(await picture(stage),))))

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)):
        assert await stage.settled() == {"sent": 1}

    delivery = await stage.tenant.only_delivery()
    log = await stage.log()
    assert delivery["attempt"] == 1
    assert sum(line["uploads"] for line in log) == 1
    *early, last = [line["status"] for line in log if line["method"] == "POST /messages"]
    assert (set(early), last) == ({400}, 200)


@pytest.mark.parametrize("platform", ["telegram", "max"])
async def test_media_whose_object_is_gone_is_given_up_and_text_is_not_held_back(
    database: Database, stage: RunningDispatchers, platform: str
) -> None:
    await stage.channels(platform, 1)
    item = await picture(stage)
    await stage.tenant.db.execute("UPDATE media_origin SET origin_url = origin_url || 'x'")
    await stage.enqueue(plan(platform, MediaPart(media=(item,))), plan(platform, TextPart(text="text")))

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)):
        assert await stage.settled() == {"sent": 1, "failed_permanent": 1}

    [failed] = await stage.tenant.events("failed_permanent")
    assert '"media_missing_origin"' in failed["error"]
    assert [line["text"] for line in await stage.accepted()] == ["text"]


async def test_a_plan_that_cannot_be_read_is_given_up_and_those_claimed_with_it_are_sent(
    database: Database, stage: RunningDispatchers
) -> None:
    """As one that a newer version wrote."""
    await stage.channels("telegram", 2)
    await stage.enqueue(
        *(Plan(version=2, platform="telegram", parts=(TextPart(text=text),)) for text in ("new", "ours"))
    )
    await stage.tenant.db.execute(
        """UPDATE renderings SET plan = '{"version": 3, "platform": "telegram", "parts": [{"kind": "hologram"}]}'
           WHERE plan #>> '{parts,0,text}' = 'new'"""
    )

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)):
        assert await stage.settled() == {"sent": 2, "failed_permanent": 2}

    assert {line["text"] for line in await stage.accepted()} == {"ours"}
    errors = await stage.tenant.db.fetch("SELECT DISTINCT last_error ->> 'code' AS code FROM deliveries")
    assert {row["code"] for row in errors} == {None, "rendering_missing"}


async def test_a_group_that_has_moved_is_followed_once(database: Database, stage: RunningDispatchers) -> None:
    [chat] = await stage.channels("telegram", 1)
    moved = -1_009_999_999_999
    await stage.control("chats", {"platform": "telegram", "id": moved, "limits": []})
    group = {"platform": "telegram", "id": int(chat), "type": "group", "migrated_to": moved}
    await stage.control("chats", group)
    await stage.enqueue(plan("telegram", TextPart(text="one")), plan("telegram", TextPart(text="two")))

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)):
        assert await stage.settled() == {"sent": 2}

    assert [line["chat"] for line in await stage.accepted()] == [str(moved)] * 2
    assert len(await stage.tenant.events("channel_migrated")) == 1
    assert len([line for line in await stage.log() if line["chat"] == chat]) == 1


async def test_a_rotated_token_is_used_without_a_restart(database: Database, stage: RunningDispatchers) -> None:
    await stage.channels("telegram", 1)
    await stage.control("tokens", {"platform": "telegram", "token": TOKENS["telegram"], "state": "revoked"})
    await stage.enqueue(plan("telegram", TextPart(text="old")))
    environment_of_the_new = "env:ANOTHER"

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)):
        assert await stage.settled() == {"failed_permanent": 1}
        await stage.tenant.db.execute("UPDATE credential_bindings SET secret_ref = $1", environment_of_the_new)
        await stage.tenant.db.execute("UPDATE channels SET paused_until = NULL, error_streak = 0, enabled = true")
        await stage.enqueue(plan("telegram", TextPart(text="new")))
        await stage.settled()

    tokens = [line["token"] for line in await stage.log()]
    assert len(set(tokens)) == 2


async def _is(stage: RunningDispatchers, status: str) -> bool:
    return (await stage.statuses()).keys() == {status}
