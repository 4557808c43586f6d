"""Workspaces take turns, alarms ring when due, and nobody works in a workspace twice at once."""

import asyncio
from datetime import timedelta
from uuid import UUID

from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.schedule import Schedule

A, B, C = (WorkspaceId(UUID(int=number)) for number in (1, 2, 3))
NOW = timedelta()
SOON = timedelta(milliseconds=20)
LATE = timedelta(hours=1)


async def test_workspaces_are_served_in_the_order_they_were_woken_each_once() -> None:
    schedule = Schedule()
    for workspace in (A, B, A, C, B):
        schedule.wake(workspace)

    assert [await schedule.next() for _ in range(3)] == [A, B, C]


async def test_one_that_is_served_and_woken_again_goes_behind_the_others() -> None:
    schedule = Schedule()
    schedule.wake(A)
    schedule.wake(B)
    served = await schedule.next()
    schedule.wake(A)
    schedule.done(A)

    assert [served, await schedule.next(), await schedule.next()] == [A, B, A]


async def test_a_wakeup_during_the_work_is_kept_until_it_is_done() -> None:
    schedule = Schedule()
    schedule.wake(A)
    await schedule.next()
    schedule.wake(A)
    waiting = asyncio.create_task(schedule.next())
    await asyncio.sleep(0)

    assert not waiting.done()
    schedule.done(A)
    assert await waiting == A


async def test_who_is_only_asked_for_has_a_doubtful_turn_unless_somebody_is_sure() -> None:
    schedule = Schedule()
    schedule.ask(A)
    schedule.ask(B)
    schedule.wake(B)
    schedule.ask(C)
    schedule.wake_in(C, NOW)
    schedule.ask(B)

    turns = [await schedule.next() for _ in range(3)]

    assert turns == [A, B, C]
    assert [schedule.is_doubtful(one) for one in (A, B, C)] == [True, False, False]
    assert not schedule.is_doubtful(A)  # the next turn is another


async def test_an_alarm_rings_when_it_is_due_and_the_earliest_counts() -> None:
    schedule = Schedule()
    schedule.wake_in(A, LATE)
    schedule.wake_in(A, SOON)
    schedule.wake_in(A, LATE)

    async with asyncio.timeout(5):
        assert await schedule.next() == A


async def test_a_new_alarm_after_the_last_one_rang_rings_again() -> None:
    schedule = Schedule()
    for _ in range(3):
        schedule.wake_in(A, SOON)
        async with asyncio.timeout(5):
            assert await schedule.next() == A
        schedule.done(A)


async def test_an_alarm_that_is_already_due_does_not_wait() -> None:
    schedule = Schedule()
    schedule.wake_in(A, timedelta(seconds=-3))

    assert await schedule.next() == A


async def test_closing_sends_every_claimer_home() -> None:
    schedule = Schedule()
    claimers = [asyncio.create_task(schedule.next()) for _ in range(3)]
    await asyncio.sleep(0)

    schedule.close()

    async with asyncio.timeout(5):
        assert await asyncio.gather(*claimers) == [None, None, None]
