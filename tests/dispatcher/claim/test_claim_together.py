"""Workspaces whose turn it is are claimed in together; one that fails is found and left out, the others are served."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from autopost_contracts.ids import ClaimToken, RunId, WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_dispatcher.claim.batch_size import LEAST, LONG, MOST, OLDEST, BatchSize
from autopost_dispatcher.claim.claim import Claimer, SendJob
from autopost_dispatcher.claim.schedule import FEW, ClaimSchedule, Serves
from autopost_dispatcher.gateway import NEVER, Claim, Claimed, ClaimedDue, Look
from dispatcher.support.sample_claims import claim
from harness.eventually import eventually

MANY = [WorkspaceId(UUID(int=number)) for number in range(1, 17)]
REFUSAL = asyncpg.NumericValueOutOfRangeError("out of range")
NOTHING = Look(None, True, False)


class ManyClaims:
    """Each workspace has one delivery. ``broken`` ones make any claim fail; ``left_out`` ones want their own."""

    def __init__(self, *broken: WorkspaceId, left_out: Sequence[WorkspaceId] = (), error: Exception = REFUSAL) -> None:
        self.broken = set(broken)
        self.left_out = set(left_out)
        self.error = error
        self.together: list[list[WorkspaceId]] = []
        self.alone: list[WorkspaceId] = []
        self.told: list[UUID] = []
        self.given_back: list[WorkspaceId] = []
        self.tolerances: list[timedelta] = []
        self.takes = 0.0
        self.looks: dict[WorkspaceId, list[Look]] = {}

    async def claim_due(
        self, workspaces: Sequence[WorkspaceId], run: RunId, limit: int, most: int, lease: timedelta, old: timedelta
    ) -> ClaimedDue:
        self.together.append(list(workspaces))
        self.tolerances.append(old)
        await asyncio.sleep(self.takes)
        if self.broken.intersection(workspaces):
            raise self.error
        token = ClaimToken(uuid4())
        claims = [claim(workspace_id=one, claim_token=token) for one in workspaces if one not in self.left_out]
        looks: dict[UUID, Look] = {
            one: Look(0.0, False, True) if one in self.left_out else self._look(one) for one in workspaces
        }
        return ClaimedDue(tuple(claims[:most]), looks, 0.0)

    def _look(self, workspace: WorkspaceId) -> Look:
        waiting = self.looks.get(workspace)
        return waiting.pop(0) if waiting else NOTHING

    async def claim_deliveries(self, workspace: WorkspaceId, *_: Any) -> Claimed:
        self.alone.append(workspace)
        if workspace in self.broken:
            raise self.error
        return Claimed((claim(workspace_id=workspace),), NEVER)

    async def set_aside(self, workspace: UUID, *_: Any) -> None:
        self.told.append(workspace)

    async def give_back_claims(self, workspace: WorkspaceId, *_: Any) -> int:
        self.given_back.append(workspace)
        return 1


class Scene:
    def __init__(self, claims: ManyClaims, room: int = 1000) -> None:
        self.claims = claims
        self.schedule = ClaimSchedule()
        self.taken: list[Claim] = []
        has_room = asyncio.Event()
        has_room.set()
        self.claimer = Claimer(
            claims,  # type: ignore[arg-type]
            self.schedule,
            None,  # type: ignore[arg-type]
            Topology("test"),
            run_id=RunId(uuid4()),
            limit=10,
            lease=timedelta(minutes=5),
            room=lambda: room,
            has_room=has_room,
            take=self._take,
            known=lambda _: (),
        )

    def _take(self, jobs: list[SendJob]) -> None:
        self.taken += [job.claim for job in jobs]

    @property
    def served(self) -> set[WorkspaceId]:
        return {one.workspace_id for one in self.taken}

    async def serve(self, expected: set[WorkspaceId]) -> None:
        running = asyncio.create_task(self.claimer.run())
        await eventually(lambda: self.served >= expected)
        self.schedule.close()
        await running


async def test_all_whose_turn_it_is_are_claimed_in_one_call() -> None:
    scene = Scene(ManyClaims())
    for one in MANY:
        scene.schedule.again(one)

    await scene.serve(set(MANY))

    assert (scene.claims.together, scene.claims.alone) == ([MANY], [])
    assert len({one.claim_token for one in scene.taken}) == 1


async def test_one_whose_turn_comes_alone_has_a_claim_of_its_own() -> None:
    scene = Scene(ManyClaims())
    scene.schedule.again(MANY[0])

    await scene.serve({MANY[0]})

    assert (scene.claims.together, scene.claims.alone) == ([], [MANY[0]])


@pytest.mark.parametrize("error", [REFUSAL, asyncpg.QueryCanceledError("statement timeout")], ids=["bad", "slow"])
@pytest.mark.parametrize("place", [0, 7, 15])
async def test_one_that_fails_is_found_by_halves_and_set_aside_and_the_others_are_served(
    place: int, error: Exception
) -> None:
    bad = MANY[place]
    scene = Scene(ManyClaims(bad, error=error))
    for one in MANY:
        scene.schedule.again(one)

    await scene.serve(set(MANY) - {bad})
    await eventually(lambda: scene.claims.told == [bad])

    assert bad not in scene.served
    assert len(scene.claims.together) <= 8  # two halves of 16, of 8, of 4, of 2
    assert len(scene.taken) == len(MANY) - 1
    assert scene.claims.given_back == []  # the database said no: nothing was claimed


async def test_after_an_answer_that_was_lost_each_gives_back_what_it_may_have_claimed() -> None:
    claims = ManyClaims(MANY[0], error=ConnectionResetError())
    scene = Scene(claims)
    for one in MANY[:3]:
        scene.schedule.again(one)
    running = asyncio.create_task(scene.claimer.run())
    await eventually(lambda: bool(claims.together))
    claims.broken.clear()

    await eventually(lambda: scene.served == set(MANY[:3]))
    scene.schedule.close()
    await running

    assert sorted(claims.given_back) == sorted(MANY[:3])
    assert claims.told == []


async def test_one_whose_pause_ran_out_has_its_next_claim_alone() -> None:
    scene = Scene(ManyClaims(left_out=[MANY[1]]))
    for one in MANY[:4]:
        scene.schedule.again(one)

    await scene.serve(set(MANY[:4]))

    assert scene.claims.alone == [MANY[1]]


async def test_one_that_was_skipped_is_looked_at_again_and_one_that_is_not_due_is_not() -> None:
    claims = ManyClaims()
    claims.looks = {MANY[0]: [Look(-0.1, False, False)], MANY[1]: [Look(3600.0, True, False)]}
    scene = Scene(claims)
    for one in MANY[:2]:
        scene.schedule.again(one)
    running = asyncio.create_task(scene.claimer.run())

    await eventually(lambda: claims.alone == [MANY[0]])
    scene.schedule.close()
    await running

    assert claims.together == [MANY[:2]]


async def test_without_room_nobody_is_claimed_in_and_nobody_loses_the_turn() -> None:
    scene = Scene(ManyClaims(), room=0)
    for one in MANY:
        scene.schedule.again(one)
    running = asyncio.create_task(scene.claimer.run())
    await eventually(lambda: not scene.claimer._has_room.is_set())
    scene.schedule.close()
    scene.claimer._has_room.set()
    await running

    assert scene.claims.together == []
    assert list(scene.schedule._ready) == MANY


async def test_a_post_that_has_just_come_in_does_not_wait_for_a_large_batch() -> None:
    schedule = ClaimSchedule()
    for one in MANY[2:]:
        schedule.again(one)
    schedule.wake(MANY[0])

    assert await schedule.next_batch(MOST, Serves.WOKEN) == [MANY[0]]
    assert await schedule.next_batch(MOST) == MANY[2:]
    schedule.wake(MANY[1])
    assert await schedule.next_batch(MOST) == [MANY[1]]


async def test_wakeups_of_a_busy_installation_take_every_second_turn_at_most() -> None:
    schedule = ClaimSchedule()
    turns = []
    for _ in range(4):
        for one in MANY:
            schedule.done(one)
        schedule.again(MANY[0])
        for one in MANY[1:]:
            schedule.wake(one)
        turns.append(await schedule.next_batch(MOST))

    assert [MANY[0] in turn for turn in turns] == [True, False, True, False]
    assert max(map(len, turns)) == FEW


async def test_a_wakeup_of_one_that_is_looked_at_in_a_moment_changes_nothing() -> None:
    schedule = ClaimSchedule()
    schedule.wake_after(MANY[0], 0.015)
    schedule.wake(MANY[0])
    schedule.wake_if_due(MANY[0])

    assert (schedule.ready(), list(schedule._woken)) == (0, [])
    assert await schedule.next() == MANY[0]


async def test_a_helper_claims_only_where_more_is_ready_than_one_claim_takes() -> None:
    schedule = ClaimSchedule()
    schedule.again(MANY[0])
    helping = asyncio.create_task(schedule.next_batch(2, Serves.BACKLOG))
    await asyncio.sleep(0)
    assert not helping.done()

    schedule.again(MANY[1])

    assert await helping == MANY[:2]


async def test_the_longer_a_claim_takes_the_fewer_and_the_younger_are_its_slots() -> None:
    size = BatchSize(ClaimSchedule(), 0.05)
    at_first = (size.now, size.tolerance.total_seconds())
    with size.measured(size.now):
        await asyncio.sleep(LONG * 2.1)

    assert at_first == (MOST // 2, OLDEST)
    assert size.now == LEAST
    assert size.tolerance.total_seconds() < 0.05 - LONG * 2

    for _ in range(40):
        with size.measured(size.now):
            pass
    assert size.now == MOST
    assert size.tolerance.total_seconds() == pytest.approx(OLDEST, abs=0.005)


def test_while_calls_are_late_slots_must_be_younger() -> None:
    missed = 0
    size = BatchSize(ClaimSchedule(), 0.05, lambda: missed)
    for _ in range(5):
        missed += 3
        with size.measured(1):
            pass
    while_late = size.tolerance.total_seconds()
    for _ in range(100):
        with size.measured(1):
            pass

    assert while_late < OLDEST
    assert size.tolerance.total_seconds() == pytest.approx(OLDEST, abs=0.005)
