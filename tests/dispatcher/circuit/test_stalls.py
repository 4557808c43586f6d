"""Groups that hang are told to the database while they do, and no longer."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import timedelta

from autopost_adapters.base import AcceptedPart
from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.send.calls import Calls, Group
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.stalls import watch_stalls
from dispatcher.support.sample_claims import WORKSPACE, job
from harness.eventually import eventually

AFTER = timedelta(milliseconds=50)


class Stalls:
    def __init__(self) -> None:
        self.told: list[tuple[set[Group], timedelta]] = []
        self.away = 0

    async def stall_groups(self, groups: Collection[Group], lasts: timedelta) -> None:
        if self.away:
            self.away -= 1
            raise ConnectionResetError
        self.told.append((set(groups), lasts))


class Stage:
    def __init__(self) -> None:
        self.stalls, self.calls, self.service = Stalls(), Calls(), Service("dispatcher")
        self.waiting: list[Group] = []
        self.over: list[WorkspaceId] = []


@asynccontextmanager
async def watching() -> AsyncIterator[Stage]:
    stage = Stage()
    watch = watch_stalls(stage.stalls, stage.calls, lambda _: stage.waiting, stage.service, AFTER, stage.over.append)
    running = asyncio.create_task(watch)
    yield stage
    stage.service.stop()
    await running


async def test_a_stall_is_told_again_and_again_and_ended_with_the_answer() -> None:
    hanging = job()
    async with watching() as stage:
        number = stage.calls.begin(hanging.claim)
        await eventually(lambda: len(stage.stalls.told) >= 3)
        assert {(frozenset(groups), lasts) for groups, lasts in stage.stalls.told} == {
            (frozenset({hanging.claim.group}), AFTER * 2)
        }

        stage.calls.end(hanging.claim, number, AcceptedPart(provider_ids=("1",)))

        await eventually(lambda: stage.over)
        assert stage.stalls.told[-1] == ({hanging.claim.group}, timedelta())
        assert stage.over == [WORKSPACE]


async def test_what_could_not_be_told_is_told_at_the_next_look() -> None:
    async with watching() as stage:
        stage.waiting = [job().claim.group]
        await eventually(lambda: stage.stalls.told)
        stage.stalls.away, stage.waiting = 3, []
        await eventually(lambda: stage.over)

    assert stage.stalls.told[-1][1] == timedelta()


async def test_while_everything_answers_nothing_is_told() -> None:
    async with watching() as stage:
        for _ in range(20):
            one = job()
            number = stage.calls.begin(one.claim)
            await asyncio.sleep(AFTER.total_seconds() / 10)
            stage.calls.end(one.claim, number, AcceptedPart(provider_ids=("1",)))

    assert stage.stalls.told == []
