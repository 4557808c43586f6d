"""A claimed delivery is sent part by part, or not at all when it is no longer safe to."""

import asyncio
import time
from datetime import timedelta

import msgspec
import pytest
from autopost_adapters.base import AcceptedPart
from autopost_contracts.outcomes import Category, Failed, Scope, Sent
from autopost_contracts.plan import Plan, TextPart
from autopost_dispatcher.send.end_delivery import Released
from autopost_dispatcher.send.slots import KNOWN_AFTER
from autopost_runtime.config.load import Secret
from dispatcher.support.fakes import CALL_TIME, FakeDatabase, FakePlatform, sender
from dispatcher.support.sample_claims import job


async def test_every_part_is_sent_in_order_and_recorded_before_the_next() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two", "three")

    outcome = await sender(platform, world).deliver(world.job(settings={"message_thread_id": 7}))

    assert outcome == Sent(provider_message_id="1", parts=(("1",), ("2",), ("3",)))
    assert platform.texts == ["one", "two", "three"]
    assert world.recorded == [(0, ("1",)), (1, ("2",)), (2, ("3",))]
    assert {(target.chat, target.thread) for _, target, _ in platform.sent} == {("-1001", 7)}


async def test_the_topic_of_the_post_goes_before_that_of_the_channel() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    plan = Plan(version=2, platform="telegram", parts=(TextPart(text="one"),), thread=9)

    await sender(platform, world).deliver(job(plan=plan, settings={"message_thread_id": 7}))

    assert [target.thread for _, target, _ in platform.sent] == [9]


@pytest.mark.parametrize(("thread", "scope"), [(9, Scope.DELIVERY), (None, Scope.CHANNEL)])
async def test_a_topic_that_only_the_post_names_and_nobody_has_is_not_the_channels_fault(
    thread: int | None, scope: Scope
) -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    platform.failures = [Failed.permanent(Scope.CHANNEL, "thread_not_found")]
    plan = Plan(version=2, platform="telegram", parts=(TextPart(text="one"),), thread=thread)

    outcome = await sender(platform, world).deliver(job(plan=plan, settings={"message_thread_id": 7}))

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.scope) == ("thread_not_found", scope)


async def test_a_retry_sends_the_tail_only() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two", "three")

    outcome = await sender(platform, world).deliver(world.job(progress=2, acknowledged=(("a",), ("b",))))

    assert platform.texts == ["three"]
    assert outcome == Sent(provider_message_id="a", parts=(("a",), ("b",), ("1",)))


async def test_a_failed_part_ends_the_delivery() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two")
    failure = Failed.transient(Scope.PLATFORM, "rate_limited", retry_after_ms=5)
    platform.failures = [failure]

    outcome = await sender(platform, world).deliver(world.job())

    assert outcome is failure
    assert len(platform.sent) == 1


async def test_a_part_of_an_invalid_claim_ends_the_delivery_without_an_outcome() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two")
    world.ours = False

    assert await sender(platform, world).deliver(world.job()) is None
    assert len(platform.sent) == 1


async def test_nothing_is_sent_when_the_lease_has_no_time_left_for_the_call() -> None:
    platform = FakePlatform()

    outcome = await sender(platform, FakeDatabase("one")).deliver(job(lease=CALL_TIME))

    assert isinstance(outcome, Released)
    assert platform.sent == []


async def test_nothing_new_is_sent_once_the_service_is_stopping() -> None:
    platform, stopping = FakePlatform(), asyncio.Event()
    stopping.set()

    outcome = await sender(platform, FakeDatabase("one"), stopping).deliver(job())

    assert isinstance(outcome, Released)
    assert platform.sent == []


async def test_a_missing_adapter_credential_or_plan_fails_with_its_scope() -> None:
    world, no_token = FakeDatabase("one"), FakeDatabase("one")
    no_token.secret = None

    unknown = await sender(FakePlatform(), world).deliver(world.job(platform="pigeon"))
    tokenless = await sender(FakePlatform(), no_token).deliver(world.job())
    planless = await sender(FakePlatform(), world).deliver(job(plan=None))

    assert [(f.code, f.scope) for f in (unknown, tokenless, planless) if isinstance(f, Failed)] == [
        ("platform_unknown", Scope.CHANNEL),
        ("credential_missing", Scope.CHANNEL),
        ("rendering_missing", Scope.DELIVERY),
    ]


async def test_a_part_that_missed_its_slot_takes_another_and_is_sent() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    late = msgspec.structs.replace(world.job(pace=1.0, slot=1234.5), slot_at=time.monotonic() - 60)

    outcome = await sender(platform, world).deliver(late)

    assert outcome == Sent(provider_message_id="1", parts=(("1",),))
    assert len(world.slots_taken) == 1
    assert world.slots_missed == [1234.5]


async def test_a_slot_that_was_not_taken_is_requested_again_when_it_has_come() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two")
    world.slots_named = [timedelta(milliseconds=20), timedelta(milliseconds=1)]

    outcome = await sender(platform, world).deliver(world.job())

    assert outcome == Sent(provider_message_id="1", parts=(("1",), ("2",)))
    assert world.slots_taken == [False]
    assert world.slots_missed == [None, None, None]


async def test_a_stop_ends_the_wait_for_a_slot_that_was_not_taken() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two")
    world.slots_named = [timedelta(seconds=4)]
    stopping = asyncio.Event()
    platform.after = stopping.set

    outcome = await sender(platform, world, stopping).deliver(world.job())

    assert isinstance(outcome, Released)
    assert platform.texts == ["one"]


async def test_a_part_whose_slot_is_far_away_is_released() -> None:
    """The group cools down: waiting for it is the queue's business."""
    platform, world = FakePlatform(), FakeDatabase("one", "two")
    world.slot_in = timedelta(minutes=1)

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Released)
    assert platform.texts == ["one"]


async def test_an_invalid_claim_gets_no_slot_and_sends_nothing_more() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two")
    world.slot_in = None

    assert await sender(platform, world).deliver(world.job()) is None
    assert platform.texts == ["one"]


async def test_a_delivery_is_released_after_missing_several_slots() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    world.slot_in = timedelta(minutes=-1)
    late = msgspec.structs.replace(world.job(pace=1.0), slot_at=time.monotonic() - 60)

    assert isinstance(await sender(platform, world).deliver(late), Released)
    assert platform.sent == []


async def test_one_part_alone_is_recorded_by_its_commit() -> None:
    world = FakeDatabase("one")

    await sender(FakePlatform(), world).deliver(world.job())

    assert world.recorded == []


async def test_a_retry_whose_parts_are_all_acknowledged_sends_nothing() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two")

    outcome = await sender(platform, world).deliver(world.job(progress=2, acknowledged=(("a",), ("b",))))

    assert outcome == Sent(provider_message_id="a", parts=(("a",), ("b",)))
    assert platform.sent == []


async def test_a_passing_error_is_retried_in_new_slots_a_limited_number_of_times() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    not_ready = Failed.transient(Scope.DELIVERY, "not_ready")
    platform.failures = [not_ready] * 3

    outcome = await sender(platform, world).deliver(world.job())

    assert outcome is not_ready
    assert platform.texts == ["one"] * 3
    assert world.slots_taken == [False, False]


async def test_a_refused_token_is_read_anew_next_time() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    platform.failures = [Failed.permanent(Scope.CHANNEL, "unauthorized")]

    await sender(platform, world).deliver(world.job())

    assert world.forgotten_tokens == 1


async def test_a_lost_lease_ends_the_delivery_without_an_outcome() -> None:
    platform, lost = FakePlatform(), job()
    lost.lease.is_lost = True

    assert await sender(platform, FakeDatabase("one")).deliver(lost) is None
    assert platform.sent == []


async def test_what_is_found_to_have_arrived_is_not_sent_again() -> None:
    platform, world = FakePlatform(can_find=True), FakeDatabase("one", "two", "three")
    platform.found = AcceptedPart(provider_ids=("seen",))

    outcome = await sender(platform, world).deliver(world.job(verify=True, progress=1, acknowledged=(("a",),)))

    assert outcome == Sent(provider_message_id="a", parts=(("a",), ("seen",), ("1",)))
    assert platform.asked == [("two", {"a"})]
    assert platform.texts == ["three"]
    assert world.recorded == [(1, ("seen",)), (2, ("1",))]


async def test_what_is_not_found_is_sent() -> None:
    platform, world = FakePlatform(can_find=True), FakeDatabase("one")

    outcome = await sender(platform, world).deliver(world.job(verify=True))

    assert outcome == Sent(provider_message_id="1", parts=(("1",),))
    assert world.slots_taken == [True]


async def test_nothing_is_sent_while_the_platform_cannot_be_searched() -> None:
    platform = FakePlatform(can_find=True)
    platform.found = Failed.permanent(Scope.CHANNEL, "forbidden")

    outcome = await sender(platform, FakeDatabase("one")).deliver(job(verify=True))

    assert platform.sent == []
    assert isinstance(outcome, Failed)
    assert (outcome.category, outcome.ambiguous, outcome.hold) == (Category.TRANSIENT, True, False)


async def test_a_platform_without_search_holds_the_delivery_for_an_operator() -> None:
    platform = FakePlatform(can_find=False)

    outcome = await sender(platform, FakeDatabase("one")).deliver(job(verify=True))

    assert platform.sent == []
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.ambiguous, outcome.hold) == ("cannot_verify", True, True)


async def test_a_retry_after_stops_other_calls_of_the_rate_group() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    platform.failures = [Failed.transient(Scope.PLATFORM, "rate_limited", retry_after_ms=60_000)]
    sending = sender(platform, world)

    await sending.deliver(world.job())
    same, other = await sending.deliver(world.job()), await sending.deliver(world.job(rate_group="another"))

    assert isinstance(same, Released)
    assert isinstance(other, Sent)
    assert len(platform.sent) == 2


async def test_a_retry_after_that_has_passed_is_forgotten() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    platform.failures = [Failed.transient(Scope.PLATFORM, "rate_limited", retry_after_ms=0)]
    sending = sender(platform, world)

    await sending.deliver(world.job())

    assert isinstance(await sending.deliver(world.job()), Sent)


async def test_a_token_that_a_platform_repeats_is_masked() -> None:
    platform, world = FakePlatform(), FakeDatabase("one")
    world.secret = Secret("77:a/b c")
    told = "no for 77:a/b c and 77%3Aa%2Fb%20c"
    platform.failures = [Failed.permanent(Scope.DELIVERY, "bad_request", told, raw={"snippet": told})]

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Failed)
    assert (outcome.message, outcome.raw) == ("no for *** and ***", {"snippet": "no for *** and ***"})


async def test_an_acknowledged_part_is_recorded_as_soon_as_the_database_is_back() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two")
    world.away = 2

    outcome = await sender(platform, world).deliver(world.job())

    assert isinstance(outcome, Sent)
    assert platform.texts == ["one", "two"]
    assert world.recorded == [(0, ("1",)), (1, ("2",))]


async def test_a_part_not_recorded_within_the_lease_is_left_to_the_next_claim() -> None:
    platform, world = FakePlatform(), FakeDatabase("one", "two")
    world.away = 1_000
    ours = world.job()
    platform.after = lambda: setattr(ours.lease, "until", time.monotonic() + 0.05)

    assert await sender(platform, world).deliver(ours) is None
    assert platform.texts == ["one"]


@pytest.mark.parametrize("asked_ms", [24 * 60 * 60 * 1000 + 1, 999_999_999_000, 10**15])
async def test_a_retry_after_of_years_is_limited_to_a_day(asked_ms: int) -> None:
    world, platform = FakeDatabase("one"), FakePlatform()
    platform.failures = [Failed.transient(Scope.PLATFORM, "rate_limited", retry_after_ms=asked_ms)]
    sending = sender(platform, world)

    outcome = await sending.deliver(world.job())

    [cooldown] = sending._context.slots._cooldowns.values()
    assert isinstance(outcome, Failed)
    assert outcome.retry_after_ms == asked_ms  # which is what the event shows
    assert cooldown.until - time.monotonic() <= 24 * 60 * 60


async def test_a_claim_that_the_database_made_in_spite_of_a_known_cooldown_is_sent() -> None:
    """An operator has ended the cooldown: releasing claims until the platform's time is over would go in circles."""
    world, platform = FakeDatabase("one"), FakePlatform()
    platform.failures = [Failed.transient(Scope.PLATFORM, "rate_limited", retry_after_ms=3_600_000)]
    sending = sender(platform, world)
    await sending.deliver(world.job())
    platform.failures = []

    claimed_before = await sending.deliver(world.job())
    later = world.job()
    later.asked_at = time.monotonic() + KNOWN_AFTER
    claimed_later = await sending.deliver(later)

    assert isinstance(claimed_before, Released)
    assert isinstance(claimed_later, Sent)
