"""Workspaces take turns, alarms ring when due, and nobody works in a workspace twice at once."""

import asyncio
from datetime import timedelta
from uuid import UUID

from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.claim.schedule import ClaimSchedule

A, B, C = (WorkspaceId(UUID(int=number)) for number in (1, 2, 3))
NOW = timedelta()
SOON = timedelta(milliseconds=20)
LATE = timedelta(hours=1)


async def test_workspaces_are_served_in_the_order_they_were_woken_each_once() -> None:
    schedule = ClaimSchedule()
    for workspace in (A, B, A, C, B):
        schedule.wake(workspace)

    assert [await schedule.next() for _ in range(3)] == [A, B, C]


async def test_a_workspace_woken_again_is_queued_behind_the_others() -> None:
    schedule = ClaimSchedule()
    schedule.wake(A)
    schedule.wake(B)
    served = await schedule.next()
    schedule.wake(A)
    schedule.done(A)

    assert [served, await schedule.next(), await schedule.next()] == [A, B, A]


async def test_a_wakeup_during_the_work_is_kept_until_it_is_done() -> None:
    schedule = ClaimSchedule()
    schedule.wake(A)
    await schedule.next()
    schedule.wake(A)
    waiting = asyncio.create_task(schedule.next())
    await asyncio.sleep(0)

    assert not waiting.done()
    schedule.done(A)
    assert await waiting == A


async def test_wake_if_due_marks_the_turn_as_unchecked_unless_it_was_woken() -> None:
    schedule = ClaimSchedule()
    schedule.wake_if_due(A)
    schedule.wake_if_due(B)
    schedule.wake(B)
    schedule.wake_if_due(C)
    schedule.wake_in(C, NOW)
    schedule.wake_if_due(B)

    turns = [await schedule.next() for _ in range(3)]

    assert turns == [A, B, C]
    assert [schedule.take_unchecked(one) for one in (A, B, C)] == [True, False, False]
    assert not schedule.take_unchecked(A)  # the next turn is another


async def test_a_timer_fires_when_it_is_due_and_the_earliest_counts() -> None:
    schedule = ClaimSchedule()
    schedule.wake_in(A, LATE)
    schedule.wake_in(A, SOON)
    schedule.wake_in(A, LATE)

    async with asyncio.timeout(5):
        assert await schedule.next() == A


async def test_a_new_timer_after_the_last_one_fires_again() -> None:
    schedule = ClaimSchedule()
    for _ in range(3):
        schedule.wake_in(A, SOON)
        async with asyncio.timeout(5):
            assert await schedule.next() == A
        schedule.done(A)


async def test_a_timer_that_is_already_due_does_not_wait() -> None:
    schedule = ClaimSchedule()
    schedule.wake_in(A, timedelta(seconds=-3))

    assert await schedule.next() == A


async def test_a_poll_says_nothing_new_of_a_workspace_in_which_a_claim_began_meanwhile() -> None:
    schedule = ClaimSchedule()
    schedule.wake(A)
    await schedule.next()
    schedule.poll_begins()
    schedule.done(A)
    schedule.wake(B)
    await schedule.next()
    for one in (A, B, C):
        schedule.polled(one, NOW)

    assert await schedule.next() == C
    assert schedule.ready() == 0
    schedule.poll_begins()
    schedule.polled(A, NOW)
    assert await schedule.next() == A


async def test_closing_ends_every_waiting_claimer() -> None:
    schedule = ClaimSchedule()
    claimers = [asyncio.create_task(schedule.next()) for _ in range(3)]
    await asyncio.sleep(0)

    schedule.close()

    async with asyncio.timeout(5):
        assert await asyncio.gather(*claimers) == [None, None, None]
