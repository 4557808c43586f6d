"""Media is brought to a platform once, from bytes that are what was stored, and sent by its id ever after."""

import asyncio

import pytest
from autopost_contracts.outcomes import Category, Failed, Scope, Sent
from autopost_contracts.plan import PlannedMedia, TextPart
from autopost_dispatcher.send.end_delivery import Released
from dispatcher.support.fakes import CALL_TIME, FakeDatabase, FakePlatform, pictures, sender

EXPIRED = Failed.transient(Scope.DELIVERY, "media_expired")


async def test_bytes_go_with_the_first_message_and_the_id_with_the_next() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    world.shows(pictures(world.store(b"cat"), world.store(b"dog")))

    sending = sender(platform, world)
    await sending.deliver(world.job())
    await sending.deliver(world.job())

    assert [media for _, _, media in platform.sent] == [[b"cat", b"dog"], ["file-cat", "file-dog"]]
    assert sorted(world.ids.values()) == ["file-cat", "file-dog"]


@pytest.mark.parametrize("away", [0, 1], ids=["told", "the database is away"])
async def test_the_end_of_a_call_with_bytes_is_told_before_the_delivery_ends(away: int) -> None:
    """The platform counts it then. A call with an id only is counted when it begins."""
    platform, world = FakePlatform(), FakeDatabase()
    world.shows(pictures(world.store(b"cat")))
    world.away = away
    first, second = world.job(pace=0.01), world.job(pace=0.01)

    sending = sender(platform, world)
    sent = await sending.deliver(first)
    await sending.deliver(second)

    assert isinstance(sent, Sent)
    assert world.uploads_ended == [first.claim.channel_id]


async def test_without_a_rate_nobody_asks_when_an_upload_ended() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    world.shows(pictures(world.store(b"cat")))

    await sender(platform, world).deliver(world.job())

    assert world.uploads_ended == []


async def test_where_uploads_are_calls_of_their_own_each_has_a_slot_beside_the_chat() -> None:
    platform, world = FakePlatform(uploads_apart=True), FakeDatabase()
    world.bot_id = None
    world.shows(pictures(world.store(b"cat"), world.store(b"dog")))

    sending = sender(platform, world)
    await sending.deliver(world.job())
    await sending.deliver(world.job())

    assert platform.uploaded == [b"cat", b"dog"]
    assert [media for _, _, media in platform.sent] == [["token-1", "token-2"]] * 2
    assert world.slots_taken == [True, True, True]  # whose bot it is, and two uploads


async def test_a_second_claim_waits_for_the_id_of_the_first_upload() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    item = world.store(b"cat")
    world.shows(pictures(item))
    world.busy = 2

    await sender(platform, world).deliver(world.job())

    assert world.takes == 3
    assert len(platform.sent) == 1


async def test_concurrent_deliveries_of_one_process_share_one_query() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    item = world.store(b"cat")
    world.shows(pictures(item))
    assert item.blob_ref
    world.ids[item.blob_ref] = "known"
    sending = sender(platform, world)

    await asyncio.gather(*(sending.deliver(world.job()) for _ in range(50)))

    assert world.takes == 1
    assert {tuple(media) for _, _, media in platform.sent} == {("known",)}


async def test_an_id_that_the_platform_forgot_is_replaced_at_once() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    item = world.store(b"cat")
    world.shows(pictures(item))
    assert item.blob_ref
    world.ids[item.blob_ref] = "old"
    platform.failures = [EXPIRED]

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Sent)
    assert [media for _, _, media in platform.sent] == [["old"], [b"cat"]]
    assert world.ids == {item.blob_ref: "file-cat"}


async def test_an_id_of_the_post_itself_cannot_be_replaced() -> None:
    platform = FakePlatform()
    platform.failures = [EXPIRED]
    world = FakeDatabase(parts=[pictures(PlannedMedia(type="image", file_id="given"))])

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Failed)
    assert (outcome.category, outcome.code) == (Category.PERMANENT, "media_expired")
    assert [media for _, _, media in platform.sent] == [["given"]]


async def test_media_without_an_origin_is_given_up() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    world.shows(pictures(PlannedMedia(type="image", blob_ref="sha256:00")))

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Failed)
    assert (outcome.category, outcome.scope, outcome.code) == (
        Category.PERMANENT,
        Scope.DELIVERY,
        "media_missing_origin",
    )


async def test_an_upload_that_fails_ends_the_delivery_before_the_message() -> None:
    platform, world = FakePlatform(uploads_apart=True), FakeDatabase()
    world.shows(pictures(world.store(b"cat")))
    platform.failures = [Failed.transient(Scope.PLATFORM, "http_503", ambiguous=False)]

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Failed)
    assert platform.sent == []


async def test_a_lease_with_time_for_a_call_but_not_for_bytes_is_given_back() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    world.shows(pictures(world.store(b"cat")))

    outcome = await sender(platform, world).deliver(world.job(lease=CALL_TIME * 2))

    assert isinstance(outcome, Released)
    assert platform.sent == []


async def test_an_order_to_stop_ends_the_wait_for_another_claim() -> None:
    platform, world, stopping = FakePlatform(), FakeDatabase(), asyncio.Event()
    world.shows(pictures(world.store(b"cat")))
    world.busy = 1_000_000
    waiting = asyncio.create_task(sender(platform, world, stopping).deliver(world.job()))
    await world.was_asked.wait()

    stopping.set()

    assert isinstance(await waiting, Released)
    assert world.takes <= 2


async def test_the_message_of_the_media_stands_for_the_whole() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    world.shows(TextPart(text="long"), pictures(world.store(b"cat")))

    outcome = await sender(platform, world).deliver(world.job())

    assert outcome == Sent(provider_message_id="2", parts=(("1",), ("2",)))


async def test_an_id_that_cannot_be_stored_does_not_cost_the_message() -> None:
    platform, world = FakePlatform(), FakeDatabase()
    world.shows(pictures(world.store(b"cat")))
    world.away = 1_000

    assert isinstance(await sender(platform, world).deliver(world.job()), Sent)
