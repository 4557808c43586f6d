"""An error of one workspace, claim or outcome is set aside: the dispatcher goes on, and the others are served."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from autopost_contracts.ids import ClaimToken, DeliveryId, RunId, WorkspaceId
from autopost_contracts.outcomes import Category, Failed, Scope, Sent
from autopost_contracts.subjects import Topology
from autopost_dispatcher.claim.claim import Claimer, SendJob
from autopost_dispatcher.claim.lease import LeaseRenewal
from autopost_dispatcher.claim.schedule import ClaimSchedule
from autopost_dispatcher.commit.commit import Committer
from autopost_dispatcher.commit.finished import FinishedDelivery
from autopost_dispatcher.dispatch import poll, workspace_of
from autopost_dispatcher.gateway import NEVER, Claimed
from autopost_dispatcher.send.end_delivery import Released
from autopost_runtime.postgres.pool import NotConnected
from autopost_runtime.telemetry import metrics
from dispatcher.support.sample_claims import WORKSPACE, claim, job
from harness.eventually import eventually

RUN = RunId(uuid4())
OTHER = WorkspaceId(UUID(int=2))
SENT = Sent(provider_message_id="1")
REFUSAL = asyncpg.NumericValueOutOfRangeError("out of range")
LATER = timedelta(minutes=1)


class Notebook:
    """What the database was told to be set aside: failures by workspace and work."""

    def __init__(self) -> None:
        self.told: list[tuple[UUID, str, int, str]] = []
        self.waits: list[timedelta] = []

    async def set_aside(self, workspace: UUID, work: str, failures: int, wait: timedelta, error: str) -> None:
        self.told.append((workspace, work, failures, error))
        self.waits.append(wait)


class Claims(Notebook):
    """Claims nothing; in ``broken`` workspaces not even that."""

    def __init__(self, *errors: Exception, broken: WorkspaceId = WORKSPACE) -> None:
        super().__init__()
        self.errors = list(errors)
        self.broken = broken
        self.claimed: list[WorkspaceId] = []
        self.claimed_at: list[float] = []
        self.given_back: list[tuple[WorkspaceId, Sequence[ClaimToken]]] = []

    async def claim_deliveries(self, workspace: WorkspaceId, *_: Any) -> Claimed:
        self.claimed.append(workspace)
        self.claimed_at.append(monotonic())
        if workspace == self.broken and self.errors:
            raise self.errors.pop(0)
        return Claimed((), NEVER)

    async def give_back_claims(
        self, workspace: WorkspaceId, run_id: RunId, known: Sequence[ClaimToken], younger_than: timedelta
    ) -> int:
        self.given_back.append((workspace, known))
        return 1


def _claimer(claims: Claims, schedule: ClaimSchedule, known: Sequence[ClaimToken] = ()) -> Claimer:
    has_room = asyncio.Event()
    has_room.set()
    return Claimer(
        claims,  # type: ignore[arg-type]
        schedule,
        None,  # type: ignore[arg-type]
        Topology("test"),
        run_id=RUN,
        limit=10,
        lease=timedelta(minutes=5),
        room=lambda: 10,
        has_room=has_room,
        take=lambda _: None,
        known=lambda _: known,
    )


@pytest.mark.parametrize("exc", [REFUSAL, KeyError("channel"), RecursionError()], ids=lambda exc: type(exc).__name__)
async def test_a_workspace_whose_claim_fails_is_set_aside_and_the_others_have_their_turns(exc: Exception) -> None:
    schedule, claims = ClaimSchedule(), Claims(exc)
    running = asyncio.create_task(_claimer(claims, schedule).run())
    schedule.wake(WORKSPACE)
    await eventually(lambda: bool(claims.told))

    for _ in range(3):  # wakeups do not cut the wait short
        schedule.wake(WORKSPACE)
        schedule.wake(OTHER)
        await eventually(lambda: not schedule._ready)
    await eventually(lambda: claims.claimed.count(WORKSPACE) >= 2)
    schedule.close()
    await running

    first, second, *_ = (at for who, at in zip(claims.claimed, claims.claimed_at, strict=True) if who == WORKSPACE)
    assert second - first >= claims.waits[0].total_seconds()
    assert OTHER in claims.claimed
    name = f"{type(exc).__name__} {getattr(exc, 'sqlstate', '')}".strip()
    assert claims.told == [(WORKSPACE, "claim", 1, name), (WORKSPACE, "claim", 0, "")]


async def test_each_failure_in_a_row_waits_longer_and_success_begins_anew() -> None:
    schedule, claims = ClaimSchedule(), Claims(REFUSAL, REFUSAL)
    running = asyncio.create_task(_claimer(claims, schedule).run())
    schedule.wake(WORKSPACE)
    await eventually(lambda: len(claims.told) == 3)
    claims.errors = [REFUSAL]
    schedule.wake(WORKSPACE)
    await eventually(lambda: len(claims.told) == 4)
    schedule.close()
    await running

    assert [failures for _, _, failures, _ in claims.told] == [1, 2, 0, 1]


async def test_a_database_that_is_away_sets_nobody_aside() -> None:
    schedule, claims = ClaimSchedule(), Claims(NotConnected(ConnectionRefusedError()), ConnectionResetError())
    running = asyncio.create_task(_claimer(claims, schedule).run())
    schedule.wake(WORKSPACE)
    await eventually(lambda: len(claims.claimed) == 3)
    schedule.close()
    await running

    assert claims.told == []


@pytest.mark.parametrize(
    ("exc", "lost"),
    [
        (ConnectionResetError(), True),
        (asyncpg.AdminShutdownError("terminating"), True),
        (KeyError("an answer that makes no sense"), True),
        (NotConnected(ConnectionRefusedError()), False),
        (REFUSAL, False),
    ],
    ids=lambda one: type(one).__name__,
)
async def test_a_claim_whose_answer_was_lost_is_given_back_before_the_next(exc: Exception, lost: bool) -> None:
    token = ClaimToken(uuid4())
    schedule, claims = ClaimSchedule(), Claims(exc)
    running = asyncio.create_task(_claimer(claims, schedule, [token]).run())
    schedule.wake(WORKSPACE)
    await eventually(lambda: len(claims.claimed) == 2)
    schedule.close()
    await running

    assert claims.given_back == ([(WORKSPACE, [token])] if lost else [])


class Ledger(Notebook):
    """Refuses what it is told to, together with whatever comes along."""

    def __init__(self, *, refuses: DeliveryId | None = None, times: int = 1_000, shortened: bool = False) -> None:
        super().__init__()
        self.refuses = refuses
        self.times = times
        self.shortened = shortened
        """Whether it takes the shortest form of it."""
        self.committed: dict[DeliveryId, dict[str, Any]] = {}

    async def commit_deliveries(
        self, workspace: WorkspaceId, run_id: RunId, outcomes: list[dict[str, Any]], *_: Any
    ) -> set[DeliveryId]:
        short = self.shortened and not any({"parts", "message"} & one.keys() for one in outcomes)
        self._take({one["delivery_id"]: one for one in outcomes}, refuse=not short)
        return set()

    async def commit_sent(self, workspace: WorkspaceId, run_id: RunId, ids: list[DeliveryId], *_: Any) -> list[int]:
        self._take({one: {"result": "sent", "short": True} for one in ids}, refuse=True)
        return []

    def _take(self, outcomes: dict[DeliveryId, dict[str, Any]], *, refuse: bool) -> None:
        if self.refuses in outcomes and refuse and self.times > 0:
            self.times -= 1
            raise REFUSAL
        self.committed |= outcomes

    async def read_outcomes(self, workspace: WorkspaceId, ids: list[DeliveryId], _: Any) -> set[DeliveryId]:
        return set(ids) - self.committed.keys()


def _committer(ledger: Ledger) -> Committer:
    return Committer(
        ledger,  # type: ignore[arg-type]
        run_id=RUN,
        pause=timedelta(hours=1),
        disable_streak=3,
        committed=lambda _: None,
    )


async def test_of_a_batch_that_is_refused_only_the_bad_one_is_set_aside() -> None:
    good = [FinishedDelivery(claim(), SENT) for _ in range(5)]
    others = [FinishedDelivery(claim(workspace_id=OTHER), SENT) for _ in range(2)]
    bad = FinishedDelivery(claim(), SENT, lease=job().lease)
    ledger = Ledger(refuses=bad.claim.delivery_id)
    committer = _committer(ledger)
    running = asyncio.create_task(committer.run())

    for one in (*good[:3], bad, *good[3:], *others):
        committer.put(one)
    async with asyncio.timeout(10):
        await committer.flush()

    assert ledger.committed.keys() == {one.claim.delivery_id for one in (*good, *others)}
    assert ledger.told == [(WORKSPACE, "commit", 1, "NumericValueOutOfRangeError 22003")]
    assert [leased.claim for leased in committer.leased()] == [bad.claim]  # nobody else may send it again
    assert not running.done()
    running.cancel()


async def test_what_was_set_aside_is_committed_as_soon_as_it_can_be() -> None:
    bad = FinishedDelivery(claim(), SENT, lease=job().lease)
    ledger = Ledger(refuses=bad.claim.delivery_id, times=3)  # together, alone, shortened
    committer = _committer(ledger)
    running = asyncio.create_task(committer.run())
    committer.put(bad)

    await eventually(lambda: bad.claim.delivery_id in ledger.committed)
    await eventually(lambda: len(ledger.told) == 2)
    running.cancel()

    assert [failures for _, _, failures, _ in ledger.told] == [1, 0]
    assert committer.leased() == []
    assert committer.claims() == []


ODD = Failed(
    category=Category.PERMANENT, scope=Scope.CHANNEL, code="x", message="odd", retry_after_ms=5, ambiguous=True
)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (
            Sent(provider_message_id="m\x00", parts=(("m\x00",), ("n",))),
            {"result": "sent", "provider_message_id": "m\ufffd"},
        ),
        (
            ODD,
            {
                "result": "failed",
                "category": "PERMANENT",
                "scope": "channel",
                "ambiguous": True,
                "hold": False,
                "answered": False,
                "retry_after_ms": 5,
                "code": "unstorable_outcome",
            },
        ),
    ],
    ids=["sent", "failed"],
)
async def test_what_cannot_be_stored_as_it_is_is_stored_in_its_shortest_form(
    outcome: Sent | Failed, expected: dict[str, Any]
) -> None:
    odd = FinishedDelivery(claim(), outcome)
    ledger = Ledger(refuses=odd.claim.delivery_id, shortened=True)
    committer = _committer(ledger)
    running = asyncio.create_task(committer.run())
    committer.put(odd)
    async with asyncio.timeout(10):
        await committer.flush()
    running.cancel()

    stored = ledger.committed[odd.claim.delivery_id]
    assert {name: stored[name] for name in stored if name not in ("delivery_id", "claim_token")} == expected
    assert ledger.told == []


async def test_a_workspace_with_much_that_cannot_be_committed_claims_no_more() -> None:
    class Refusing(Ledger):
        def _take(self, outcomes: dict[DeliveryId, dict[str, Any]], *, refuse: bool) -> None:
            raise REFUSAL

    committer = _committer(Refusing())
    running = asyncio.create_task(committer.run())
    assert not committer.is_blocked(WORKSPACE)
    for _ in range(100):
        committer.put(FinishedDelivery(claim(), Released()))
    async with asyncio.timeout(10):
        await committer.flush()
    running.cancel()

    assert (committer.is_blocked(WORKSPACE), committer.is_blocked(OTHER)) == (True, False)
    assert committer.waiting == 0  # others have room


async def test_a_lease_that_cannot_be_renewed_keeps_no_other_from_being_renewed() -> None:
    jobs = [job(lease=timedelta(seconds=1)) for _ in range(3)]
    bad = jobs[1].claim.delivery_id

    class Leases:
        async def renew_leases(
            self, workspace: WorkspaceId, claims: Sequence[Any], lease: timedelta
        ) -> set[DeliveryId]:
            ids = {one.delivery_id for one in claims}
            if bad in ids:
                raise REFUSAL
            return ids

    def leased() -> list[SendJob]:
        return jobs

    await LeaseRenewal(Leases(), timedelta(minutes=5), leased).renew_old()

    assert [one.lease.left() > 60 for one in jobs] == [True, False, True]
    assert not any(one.lease.is_lost for one in jobs)


async def test_a_poll_that_fails_is_made_again() -> None:
    stopping, schedule, asked = asyncio.Event(), ClaimSchedule(), 0

    class Due:
        async def due_workspaces(self) -> list[tuple[WorkspaceId, timedelta]]:
            nonlocal asked
            asked += 1
            if asked == 1:
                raise OverflowError("date value out of range")
            stopping.set()
            return [(OTHER, timedelta())]

    async with asyncio.timeout(10):
        await poll(schedule, Due(), timedelta(milliseconds=1), stopping)
        found = await schedule.next()

    assert found == OTHER
    assert b"autopost_polls_failed_total" in metrics.render()


@pytest.mark.parametrize("subject", ["wakeup.dispatch.nobody", "", ".", "x" * 5000, "wakeup.dispatch.\x00"])
def test_a_subject_that_names_no_workspace_is_an_error_of_its_message(subject: str) -> None:
    with pytest.raises(ValueError):
        workspace_of(subject)
