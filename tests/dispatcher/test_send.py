"""A claimed delivery is sent part by part, or not at all when it is no longer safe to."""

import asyncio
import time
from datetime import timedelta

import msgspec
from autopost_adapters.base import Accepted, Target
from autopost_contracts.ids import RenderingId, WorkspaceId
from autopost_contracts.outcomes import Failed, Scope, Sent
from autopost_contracts.plan import Part, Plan, TextPart
from autopost_dispatcher.gateway import Claim
from autopost_dispatcher.send import Released, Sender
from autopost_runtime.config import Secret

from dispatcher.claims import job

TIMEOUT = timedelta(seconds=30)


class Platform:
    """Accepts everything, under the number of the call, until told otherwise."""

    platform = "telegram"

    def __init__(self) -> None:
        self.sent: list[tuple[str, Target]] = []
        self.failure: Failed | None = None

    async def send(self, part: Part, target: Target) -> Accepted | Failed:
        self.sent.append((part.text, target))
        return self.failure or Accepted(provider_ids=(str(len(self.sent)),))


class World:
    """Plans, tokens and progress, as the sender asks for them."""

    def __init__(self, *texts: str) -> None:
        self.known: Plan | None = Plan(version=1, platform="telegram", parts=tuple(TextPart(text=t) for t in texts))
        self.secret: Secret | None = Secret("token")
        self.recorded: list[tuple[int, tuple[str, ...]]] = []
        self.ours = True
        self.slot_in: timedelta | None = timedelta()
        self.asked_for_slots = 0

    async def plan(self, workspace: WorkspaceId, rendering: RenderingId) -> Plan | None:
        return self.known

    async def token(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Secret | None:
        return self.secret

    async def record_progress(self, claim: Claim, part: int, provider_ids: tuple[str, ...]) -> bool:
        self.recorded.append((part, provider_ids))
        return self.ours

    async def take_slot(self, claim: Claim) -> timedelta | None:
        self.asked_for_slots += 1
        return self.slot_in


def sender(platform: Platform, world: World, stopping: asyncio.Event | None = None) -> Sender:
    return Sender(
        {"telegram": platform},
        world,
        world,
        world,
        provider_timeout=TIMEOUT,
        stopping=stopping or asyncio.Event(),
    )


async def test_every_part_is_sent_in_order_and_each_but_the_last_is_recorded_first() -> None:
    platform, world = Platform(), World("one", "two", "three")

    outcome = await sender(platform, world).deliver(job(settings={"message_thread_id": 7}))

    assert outcome == Sent(provider_message_id="1", parts=("1", "2", "3"))
    assert [text for text, _ in platform.sent] == ["one", "two", "three"]
    assert world.recorded == [(0, ("1",)), (1, ("2",))]
    assert {(target.chat, target.thread) for _, target in platform.sent} == {("-1001", 7)}


async def test_a_retry_sends_the_tail_only() -> None:
    platform, world = Platform(), World("one", "two", "three")

    outcome = await sender(platform, world).deliver(job(progress=2, acknowledged=(("a",), ("b",))))

    assert [text for text, _ in platform.sent] == ["three"]
    assert outcome == Sent(provider_message_id="a", parts=("a", "b", "1"))


async def test_a_failed_part_ends_the_delivery() -> None:
    platform, world = Platform(), World("one", "two")
    platform.failure = Failed.transient(Scope.PLATFORM, "rate_limited", retry_after_ms=5)

    outcome = await sender(platform, world).deliver(job())

    assert outcome is platform.failure
    assert len(platform.sent) == 1


async def test_a_part_that_is_no_longer_ours_to_record_stops_without_a_word() -> None:
    platform, world = Platform(), World("one", "two")
    world.ours = False

    assert await sender(platform, world).deliver(job()) is None
    assert len(platform.sent) == 1


async def test_nothing_is_sent_when_the_lease_has_no_time_left_for_the_call() -> None:
    platform = Platform()

    outcome = await sender(platform, World("one")).deliver(job(lease=TIMEOUT))

    assert isinstance(outcome, Released)
    assert platform.sent == []


async def test_nothing_new_is_sent_once_the_service_is_stopping() -> None:
    platform, stopping = Platform(), asyncio.Event()
    stopping.set()

    outcome = await sender(platform, World("one"), stopping).deliver(job())

    assert isinstance(outcome, Released)
    assert platform.sent == []


async def test_what_is_missing_fails_where_it_belongs() -> None:
    world, no_token, no_plan = World("one"), World("one"), World("one")
    no_token.secret = None
    no_plan.known = None

    unknown = await sender(Platform(), world).deliver(job(platform="pigeon"))
    tokenless = await sender(Platform(), no_token).deliver(job())
    planless = await sender(Platform(), no_plan).deliver(job())

    assert [(f.code, f.scope) for f in (unknown, tokenless, planless) if isinstance(f, Failed)] == [
        ("platform_unknown", Scope.CHANNEL),
        ("credential_missing", Scope.CHANNEL),
        ("rendering_missing", Scope.DELIVERY),
    ]


async def test_a_part_that_missed_its_slot_takes_another_and_is_sent() -> None:
    platform, world = Platform(), World("one")
    late = msgspec.structs.replace(job(pace=timedelta(seconds=1)), slot_at=time.monotonic() - 60)

    outcome = await sender(platform, world).deliver(late)

    assert outcome == Sent(provider_message_id="1", parts=("1",))
    assert world.asked_for_slots == 1


async def test_a_part_whose_slot_is_far_away_goes_back_unsent() -> None:
    """The group cools down: waiting for it is the queue's business."""
    platform, world = Platform(), World("one", "two")
    world.slot_in = timedelta(minutes=1)

    outcome = await sender(platform, world).deliver(job())

    assert isinstance(outcome, Released)
    assert [text for text, _ in platform.sent] == ["one"]


async def test_a_claim_that_passed_on_gets_no_slot_and_sends_nothing_more() -> None:
    platform, world = Platform(), World("one", "two")
    world.slot_in = None

    assert await sender(platform, world).deliver(job()) is None
    assert [text for text, _ in platform.sent] == ["one"]


async def test_a_worker_that_is_late_again_and_again_gives_up() -> None:
    platform, world = Platform(), World("one")
    world.slot_in = timedelta(minutes=-1)
    late = msgspec.structs.replace(job(pace=timedelta(seconds=1)), slot_at=time.monotonic() - 60)

    assert isinstance(await sender(platform, world).deliver(late), Released)
    assert platform.sent == []
