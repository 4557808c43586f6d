"""Flights are bounded by what is claimed and not yet committed, and the bound lets go of everything again."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.outcomes import Sent
from autopost_contracts.subjects import Topology
from autopost_dispatcher.claim.claim import Claimer, SendJob
from autopost_dispatcher.claim.schedule import ClaimSchedule
from autopost_dispatcher.commit.commit import Committer
from autopost_dispatcher.dispatch import Dispatch
from autopost_dispatcher.gateway import NEVER, Claimed
from autopost_dispatcher.send.raw_answers import RawAnswers
from autopost_runtime.storage.payloads import Payloads
from dispatcher.support.sample_claims import WORKSPACE, job
from harness.eventually import eventually

RUN = RunId(uuid4())


class Sends:
    async def deliver(self, job: SendJob) -> Sent:
        return Sent(provider_message_id="1")


class Ledger:
    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.ambiguous: list[bool | None] = []
        """``None``: given back."""

    async def commit_deliveries(
        self, workspace: WorkspaceId, run_id: RunId, outcomes: list[dict[str, Any]], *_: Any
    ) -> set[Any]:
        self.ambiguous += [one.get("ambiguous") for one in outcomes]
        return set()

    async def commit_sent(self, *_: Any) -> list[int]:
        await self.gate.wait()
        return []


async def test_in_flight_counts_deliveries_being_sent() -> None:
    answered = asyncio.Event()

    class Waits:
        async def deliver(self, job: SendJob) -> Sent:
            await answered.wait()
            return Sent(provider_message_id="1")

    dispatch, _ = _dispatch(Waits(), Ledger(), claim_limit=5)
    idle = dispatch.in_flight

    dispatch.take([job() for _ in range(13)])
    await asyncio.sleep(0)
    busy = dispatch.in_flight
    answered.set()
    await eventually(lambda: dispatch.in_flight == 0)

    assert (idle, busy) == (0, 13)


async def test_a_claimer_without_room_waits_and_lets_others_work() -> None:
    """Room is found wanting although it was announced: that must not turn into a loop that never pauses."""
    schedule, has_room, claimed = ClaimSchedule(), asyncio.Event(), asyncio.Event()
    room = 0

    class Database:
        async def claim_deliveries(self, *_: Any) -> Claimed:
            claimed.set()
            return Claimed((), NEVER)

    claimer = _claimer(Database(), schedule, lambda: room, has_room)
    running = asyncio.create_task(claimer.run())
    has_room.set()
    schedule.wake(WORKSPACE)
    async with asyncio.timeout(10):
        await eventually(lambda: not has_room.is_set())
        room = 10
        has_room.set()
        await claimed.wait()
    schedule.close()
    await running


@pytest.mark.parametrize(("due_in", "claims"), [(timedelta(), 1), (timedelta(hours=1), 0), (NEVER, 0)])
async def test_after_a_commit_nothing_is_claimed_that_is_not_due(due_in: timedelta, claims: int) -> None:
    schedule, has_room, asked = ClaimSchedule(), asyncio.Event(), []
    has_room.set()

    class Database:
        async def next_due_in(self, _: WorkspaceId) -> timedelta:
            asked.append("due")
            return due_in

        async def claim_deliveries(self, *_: Any) -> Claimed:
            asked.append("claim")
            return Claimed((), NEVER)

    running = asyncio.create_task(_claimer(Database(), schedule, lambda: 10, has_room).run())
    schedule.wake_if_due(WORKSPACE)
    async with asyncio.timeout(10):
        await eventually(lambda: len(asked) == 1 + claims)
    schedule.close()
    await running

    assert asked == ["due", "claim"][: 1 + claims]
    assert (WORKSPACE in schedule._due_at) == (timedelta() < due_in < NEVER)


def _claimer(database: Any, schedule: ClaimSchedule, room: Callable[[], int], has_room: asyncio.Event) -> Claimer:
    return Claimer(
        database,
        schedule,
        None,  # type: ignore[arg-type]
        Topology("test"),
        run_id=RUN,
        limit=10,
        lease=timedelta(minutes=5),
        room=room,
        has_room=has_room,
        take=lambda _: None,
        known=lambda _: (),
    )


@pytest.mark.parametrize("concurrency", [1, 7, 200])
async def test_room_is_available_again_after_all_deliveries_have_ended(concurrency: int) -> None:
    ledger = Ledger()
    committer = Committer(
        ledger,  # type: ignore[arg-type]
        run_id=RUN,
        pause=timedelta(hours=1),
        disable_streak=3,
        committed=lambda _: dispatch.make_room(),
    )
    dispatch = Dispatch(
        Sends(), RawAnswers(Payloads(None, "dispatcher")), committer, concurrency=concurrency, claim_limit=0
    )  # type: ignore[arg-type]
    running = asyncio.create_task(committer.run())

    dispatch.take([job() for _ in range(concurrency)])
    await eventually(lambda: committer.waiting == concurrency)
    assert dispatch.room() == concurrency  # what waits to be committed keeps nobody from being sent
    dispatch.take([job() for _ in range(concurrency)])
    await eventually(lambda: committer.waiting == 2 * concurrency)
    full, is_open = dispatch.room(), dispatch.has_room.is_set()
    ledger.gate.set()
    async with asyncio.timeout(10):
        await dispatch.has_room.wait()
        await committer.flush()
    running.cancel()

    assert (full, is_open) == (0, False)
    assert dispatch.room() == concurrency


def _dispatch(sender: Any, ledger: Ledger, claim_limit: int = 0) -> tuple[Dispatch, Committer]:
    committer = Committer(
        ledger,  # type: ignore[arg-type]
        run_id=RUN,
        pause=timedelta(hours=1),
        disable_streak=3,
        committed=lambda _: None,
    )
    return Dispatch(
        sender, RawAnswers(Payloads(None, "dispatcher")), committer, concurrency=10, claim_limit=claim_limit
    ), committer


async def test_a_slow_answer_does_not_delay_other_deliveries() -> None:
    """Five were taken together, and the first of them to wait must not hold up those behind it."""
    under_way: list[SendJob] = []
    answer = asyncio.Event()

    class Waits:
        async def deliver(self, job: SendJob) -> Sent:
            under_way.append(job)
            if len(under_way) > 1:
                await answer.wait()
            return Sent(provider_message_id="1")

    dispatch, committer = _dispatch(Waits(), Ledger())
    jobs = [job() for _ in range(5)]
    dispatch.take(jobs)
    assert dispatch.room() == 5  # as soon as they are taken

    async with asyncio.timeout(10):
        await eventually(lambda: len(under_way) == 5)
    assert (under_way, dispatch.jobs()) == (jobs, jobs[1:])
    answer.set()
    await eventually(lambda: committer.waiting == 5)
    assert dispatch.room() == 10


async def test_claimed_deliveries_stay_pending_until_others_have_ended() -> None:
    flying, most, landed = 0, 0, 0
    answers = asyncio.Semaphore(0)

    class Waits:
        async def deliver(self, job: SendJob) -> Sent:
            nonlocal flying, most, landed
            flying += 1
            most = max(most, flying)
            await answers.acquire()
            flying, landed = flying - 1, landed + 1
            return Sent(provider_message_id="1")

    dispatch, _ = _dispatch(Waits(), Ledger(), claim_limit=15)
    jobs = [job() for _ in range(25)]
    dispatch.take(jobs)
    assert (dispatch.room(), dispatch.has_room.is_set()) == (0, False)

    async with asyncio.timeout(10):
        await eventually(lambda: flying == 7)  # of ten: the share of one platform
        assert len(dispatch.jobs()) == 25  # all of them are leased to us
        for number in range(1, 26):
            answers.release()
            await eventually(lambda number=number: (landed, flying) == (number, min(7, 25 - number)))  # type: ignore[misc]
    assert (most, dispatch.jobs()) == (7, [])


@pytest.mark.parametrize("has_called", [False, True])
async def test_a_stop_right_after_a_claim_leaves_no_lease(has_called: bool) -> None:
    """Taken and not yet begun, they are sent or given back like all others: in doubt only where a call was made."""
    ledger = Ledger()
    ledger.gate.set()
    never = asyncio.Event()

    class Silent:
        async def deliver(self, job: SendJob) -> Sent:
            job.in_doubt = has_called
            await never.wait()
            return Sent(provider_message_id="1")

    dispatch, committer = _dispatch(Silent(), ledger, claim_limit=15)
    running = asyncio.create_task(committer.run())

    dispatch.take([job() for _ in range(25)])
    async with asyncio.timeout(10):
        await dispatch.drain(timedelta())
    running.cancel()

    assert ledger.ambiguous == [has_called or None] * 25


class Hangs:
    """One platform does not answer until it is told to; all others do."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.hanging = 0
        self.sent: list[str] = []

    async def deliver(self, job: SendJob) -> Sent:
        if job.claim.channel.platform == "telegram" and not job.is_trial:
            self.hanging += 1
            await self.answers.wait()
        self.sent.append(job.claim.channel.platform)
        return Sent(provider_message_id="1")


async def test_a_platform_that_hangs_leaves_a_share_of_the_places_to_the_others() -> None:
    hangs, ledger = Hangs(), Ledger()
    ledger.gate.set()
    dispatch, _ = _dispatch(hangs, ledger, claim_limit=10)

    dispatch.take([job() for _ in range(15)])
    await eventually(lambda: hangs.hanging == 7)
    dispatch.take([job(platform="max", rate_group="max") for _ in range(5)])

    await eventually(lambda: hangs.sent == ["max"] * 5)
    assert (hangs.hanging, dispatch.in_flight, len(dispatch.jobs())) == (7, 15, 15)
    assert dispatch.room() == 10 + 10 - 7 - 7, "what waits for the platform leaves the others room"
    hangs.answers.set()
    await eventually(lambda: hangs.sent.count("telegram") == 15)
    assert dispatch.in_flight == 0


async def test_groups_that_wait_for_a_place_are_named_after_a_while() -> None:
    hangs = Hangs()
    dispatch, _ = _dispatch(hangs, Ledger(), claim_limit=10)
    dispatch.take([job(rate_group="first") for _ in range(7)])
    await eventually(lambda: hangs.hanging == 7)
    late = [job(rate_group="second"), job(rate_group="third"), job(platform="max", rate_group="max")]
    now = time.monotonic()
    for one, age in zip(late, (5, 1, 5), strict=True):
        one.asked_at = now - age

    dispatch.take(late)

    await eventually(lambda: hangs.sent == ["max"])
    assert [group for _, _, group in dispatch.groups_waiting(2)] == ["second"]
    assert [group for _, _, group in dispatch.groups_waiting(0.5)] == ["second", "third"]


async def test_a_trial_waits_for_no_place_in_the_share() -> None:
    hangs = Hangs()
    dispatch, _ = _dispatch(hangs, Ledger(), claim_limit=10)
    dispatch.take([job() for _ in range(9)])
    await eventually(lambda: hangs.hanging == 7)
    trial = job()
    trial.is_trial = True

    dispatch.take([trial])

    await eventually(lambda: hangs.sent == ["telegram"])


async def test_a_stop_gives_back_what_waits_for_a_place() -> None:
    hangs, ledger = Hangs(), Ledger()
    ledger.gate.set()
    dispatch, committer = _dispatch(hangs, ledger, claim_limit=10)
    running = asyncio.create_task(committer.run())
    dispatch.take([job() for _ in range(15)])
    await eventually(lambda: hangs.hanging == 7)

    async with asyncio.timeout(10):
        await dispatch.drain(timedelta())
    running.cancel()

    assert len(ledger.ambiguous) == 15
