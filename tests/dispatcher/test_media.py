"""Media is brought to a platform once, from bytes that are what was stored, and sent by its id ever after."""

import asyncio

from autopost_contracts.outcomes import Category, Failed, Scope, Sent
from autopost_contracts.plan import PlannedMedia, TextPart
from autopost_dispatcher.over import Released

from dispatcher.world import CALL_TIME, Platform, World, pictures, sender

EXPIRED = Failed.transient(Scope.DELIVERY, "media_expired")


async def test_bytes_go_with_the_first_message_and_the_id_with_the_next() -> None:
    platform, world = Platform(), World()
    world.shows(pictures(world.store(b"cat"), world.store(b"dog")))

    sending = sender(platform, world)
    await sending.deliver(world.job())
    await sending.deliver(world.job())

    assert [media for _, _, media in platform.sent] == [[b"cat", b"dog"], ["file-cat", "file-dog"]]
    assert sorted(world.ids.values()) == ["file-cat", "file-dog"]


async def test_where_uploads_are_calls_of_their_own_each_has_a_slot_beside_the_chat() -> None:
    platform, world = Platform(uploads_apart=True), World()
    world.shows(pictures(world.store(b"cat"), world.store(b"dog")))

    sending = sender(platform, world)
    await sending.deliver(world.job())
    await sending.deliver(world.job())

    assert platform.uploaded == [b"cat", b"dog"]
    assert [media for _, _, media in platform.sent] == [["token-1", "token-2"]] * 2
    assert world.slots_taken == [True, True, True]  # whose bot it is, and two uploads


async def test_whoever_comes_while_another_brings_it_waits_for_the_id() -> None:
    platform, world = Platform(), World()
    item = world.store(b"cat")
    world.shows(pictures(item))
    world.busy = 2

    await sender(platform, world).deliver(world.job())

    assert world.takes == 3
    assert len(platform.sent) == 1


async def test_many_of_one_process_ask_the_database_as_one() -> None:
    platform, world = Platform(), World()
    item = world.store(b"cat")
    world.shows(pictures(item))
    assert item.blob_ref
    world.ids[item.blob_ref] = "known"
    sending = sender(platform, world)

    await asyncio.gather(*(sending.deliver(world.job()) for _ in range(50)))

    assert world.takes == 1
    assert {tuple(media) for _, _, media in platform.sent} == {("known",)}


async def test_an_id_that_the_platform_forgot_is_replaced_at_once() -> None:
    platform, world = Platform(), World()
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
    platform = Platform()
    platform.failures = [EXPIRED]
    world = World(parts=[pictures(PlannedMedia(type="image", file_id="given"))])

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Failed)
    assert (outcome.category, outcome.code) == (Category.PERMANENT, "media_expired")
    assert [media for _, _, media in platform.sent] == [["given"]]


async def test_media_without_an_origin_is_given_up() -> None:
    platform, world = Platform(), World()
    world.shows(pictures(PlannedMedia(type="image", blob_ref="sha256:00")))

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Failed)
    assert (outcome.category, outcome.scope, outcome.code) == (
        Category.PERMANENT,
        Scope.DELIVERY,
        "media_missing_origin",
    )


async def test_an_upload_that_fails_ends_the_delivery_before_the_message() -> None:
    platform, world = Platform(uploads_apart=True), World()
    world.shows(pictures(world.store(b"cat")))
    platform.failures = [Failed.transient(Scope.PLATFORM, "http_503", ambiguous=False)]

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Failed)
    assert platform.sent == []


async def test_a_lease_with_time_for_a_call_but_not_for_bytes_is_given_back() -> None:
    platform, world = Platform(), World()
    world.shows(pictures(world.store(b"cat")))

    outcome = await sender(platform, world).deliver(world.job(lease=CALL_TIME * 2))

    assert isinstance(outcome, Released)
    assert platform.sent == []


async def test_an_order_to_stop_ends_the_wait_for_another_claim() -> None:
    platform, world, stopping = Platform(), World(), asyncio.Event()
    world.shows(pictures(world.store(b"cat")))
    world.busy = 1_000_000
    waiting = asyncio.create_task(sender(platform, world, stopping).deliver(world.job()))
    await world.was_asked.wait()

    stopping.set()

    assert isinstance(await waiting, Released)
    assert world.takes <= 2


async def test_the_message_of_the_media_stands_for_the_whole() -> None:
    platform, world = Platform(), World()
    world.shows(TextPart(text="long"), pictures(world.store(b"cat")))

    outcome = await sender(platform, world).deliver(world.job())

    assert outcome == Sent(provider_message_id="2", parts=(("1",), ("2",)))


async def test_an_id_that_cannot_be_stored_does_not_cost_the_message() -> None:
    platform, world = Platform(), World()
    world.shows(pictures(world.store(b"cat")))
    world.away = 1_000

    assert isinstance(await sender(platform, world).deliver(world.job()), Sent)
