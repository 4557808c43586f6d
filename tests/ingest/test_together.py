"""Pushes that come together are admitted together, and none of them pays for it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Self
from uuid import uuid4

import asyncpg
import pytest
from autopost_contracts.ids import EndpointId, RunId, WorkspaceId
from autopost_ingest import together
from autopost_ingest.crowds import Crowded
from autopost_ingest.gateway import Endpoint, Push, Verdict
from autopost_ingest.together import Together
from autopost_runtime.postgres import NotConnected
from harness.eventually import eventually
from msgspec import Raw

ENDPOINT = Endpoint(
    workspace_id=WorkspaceId(uuid4()),
    endpoint_id=EndpointId(uuid4()),
    workspace_status="active",
    max_payload_bytes=1024,
)


class Calls:
    """Stands in for the database: every call waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.open = asyncio.Event()
        self.faults: dict[str, Exception] = {}
        self.routed = 1
        self.duplicates: set[str] = set()
        self.ended = 0
        self.connections = 0
        self.others_wait = False
        self.away: Exception | None = None
        self._waiting: list[asyncio.Event] = []

    async def are_busy(self) -> None:
        """As many calls as there may be are under way; whoever was there before has called or is in line."""
        await eventually(lambda: len(self.batches) - self.ended == together.AT_ONCE)

    def let_one_go(self) -> None:
        """The one that has waited longest."""
        self._waiting.pop(0).set()

    @asynccontextmanager
    async def on_one_connection(self) -> AsyncIterator[Self]:
        if self.away is not None:
            raise self.away
        self.connections += 1
        yield self

    async def _next(self) -> None:
        mine = asyncio.Event()
        self._waiting.append(mine)
        await asyncio.wait(
            [asyncio.create_task(event.wait()) for event in (mine, self.open)], return_when=asyncio.FIRST_COMPLETED
        )

    async def admit_posts(self, _: Endpoint, posts: Sequence[Push], *, audit_deduped: bool) -> list[Verdict]:
        assert not audit_deduped
        names = [push.payload_hash for push in posts]
        self.batches.append(names)
        await self._next()
        self.ended += 1
        for name in names:
            if name in self.faults:
                raise self.faults[name]
        return [self._verdict(name) for name in names]

    def _verdict(self, name: str) -> Verdict:
        if name in self.duplicates:
            return Verdict(verdict="duplicate", of=name)
        return Verdict(verdict="accepted", run_id=RunId(uuid4()), routed=self.routed, of=name)


def pushing(admissions: Together, *names: str, size: int = 10) -> list[asyncio.Task[Verdict]]:
    return [
        asyncio.create_task(admissions.admit(ENDPOINT, Push(post=Raw(b"x" * size), payload_hash=name)))
        for name in names
    ]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def admissions(calls: Calls) -> Together:
    return Together(calls, audit_deduped=False)  # type: ignore[arg-type]


async def test_a_push_that_comes_alone_goes_at_once(calls, admissions):
    [push] = pushing(admissions, "a")

    await eventually(lambda: calls.batches == [["a"]])
    calls.open.set()
    assert (await push).of == "a"


async def test_those_that_come_meanwhile_share_the_next_call_and_each_has_its_own_answer(calls, admissions):
    pushes = pushing(admissions, *"abcdefg")
    await calls.are_busy()
    assert calls.batches == [["a"], ["b"]]

    calls.open.set()

    assert [(await push).of for push in pushes] == list("abcdefg")
    assert calls.batches == [["a"], ["b"], list("cdefg")]


async def test_a_second_call_waits_until_it_has_as_many_as_the_first_took_or_that_has_ended(calls, admissions):
    calls.routed = together.FEW_CHANNELS
    first = pushing(admissions, *"abcdef")
    await calls.are_busy()
    calls.let_one_go()
    await eventually(lambda: len(calls.batches) == 3)
    calls.let_one_go()
    await eventually(lambda: calls.ended == 2)

    few = pushing(admissions, *"ghi")
    await eventually(lambda: len(admissions._lines[ENDPOINT.endpoint_id]._waiting) == 3)
    assert calls.batches == [["a"], ["b"], list("cdef")]

    enough = pushing(admissions, "j")
    await eventually(lambda: len(calls.batches) == 4)
    late = pushing(admissions, "k")
    calls.open.set()

    assert [(await push).of for push in (*first, *few, *enough, *late)] == list("abcdefghijk")
    assert calls.batches[3:] == [list("ghij"), ["k"]]


async def test_of_posts_to_few_channels_half_are_called_while_the_other_half_comes(calls, admissions, monkeypatch):
    monkeypatch.setattr(together, "PRICE", 2)
    pushes = pushing(admissions, *"abcdefghijkl")
    await calls.are_busy()
    calls.let_one_go()
    await eventually(lambda: len(calls.batches) == 3)  # of the ten in line and the one that is answered now
    assert calls.batches == [["a"], ["b"], list("cdefgh")]

    calls.let_one_go()
    await eventually(lambda: calls.ended == 2)
    pushes += pushing(admissions, *"mnop")
    await eventually(lambda: len(admissions._lines[ENDPOINT.endpoint_id]._waiting) == 8)
    assert len(calls.batches) == 3

    pushes += pushing(admissions, "q")  # half as many again as the call has: they come faster than it takes them in
    await eventually(lambda: len(calls.batches) == 4)
    assert calls.batches[3] == list("ijklmnop")
    calls.open.set()
    assert [(await push).of for push in pushes] == list("abcdefghijklmnopq")


async def test_those_that_are_answered_just_now_count_among_those_that_come(calls, admissions, monkeypatch):
    monkeypatch.setattr(together, "PRICE", 2)
    pushes = pushing(admissions, *"abcdefghijkl")
    await calls.are_busy()
    calls.let_one_go()
    await eventually(lambda: len(calls.batches) == 3)
    calls.let_one_go()
    await eventually(lambda: calls.ended == 2)
    pushes += pushing(admissions, *"mnop")
    await eventually(lambda: len(admissions._lines[ENDPOINT.endpoint_id]._waiting) == 8)

    calls.let_one_go()  # of six

    await eventually(lambda: len(calls.batches) == 4)
    assert calls.batches[2:] == [list("cdefgh"), list("ijklmno")]
    calls.open.set()
    await asyncio.gather(*pushes)


async def test_a_few_posts_are_not_split(calls, admissions):
    pushes = pushing(admissions, *"abcdefgh")
    await calls.are_busy()
    calls.let_one_go()
    calls.let_one_go()
    await eventually(lambda: len(calls.batches) == 3)
    calls.open.set()

    await asyncio.gather(*pushes)
    assert calls.batches == [["a"], ["b"], list("cdefgh")]


async def test_a_line_that_is_empty_is_forgotten(calls, admissions):
    calls.open.set()

    await asyncio.gather(*pushing(admissions, *"abcdefg"))

    await eventually(lambda: admissions._lines == {})


async def test_a_call_takes_no_more_deliveries_posts_and_bytes_than_it_should(calls, admissions, monkeypatch):
    monkeypatch.setattr(together, "MOST_POSTS", 4)
    monkeypatch.setattr(together, "MOST_DELIVERIES", 100)
    monkeypatch.setattr(together, "MOST_BYTES", 35)
    pushes = pushing(admissions, *"abcdefgh")
    await calls.are_busy()
    calls.open.set()
    await asyncio.gather(*pushes)
    assert max(map(len, calls.batches)) == 3  # 35 bytes

    calls.open.clear()
    calls.routed = 50
    pushes = pushing(admissions, *"abcdefgh", size=1)
    await calls.are_busy()
    calls.open.set()
    await asyncio.gather(*pushes)

    assert max(map(len, calls.batches[-3:])) == 2  # of 50 channels each


async def test_a_call_of_duplicates_says_nothing_about_how_many_channels_the_next_posts_go_to(calls, admissions):
    calls.routed = together.MOST_DELIVERIES // 2
    calls.duplicates = set("cd")
    pushes = pushing(admissions, *"abcdefghijklmnopqrst")
    await calls.are_busy()
    for ended in (1, 2):
        calls.let_one_go()
        await eventually(lambda ended=ended: len(calls.batches) == 2 + ended)
    assert calls.batches == [["a"], ["b"], ["c", "d"], ["e", "f"]]

    calls.let_one_go()

    await eventually(lambda: len(calls.batches) == 5)
    assert calls.batches[4] == ["g", "h"]
    calls.open.set()
    assert [(await push).of for push in pushes] == list("abcdefghijklmnopqrst")


async def test_a_post_larger_than_a_call_goes_alone(calls, admissions, monkeypatch):
    monkeypatch.setattr(together, "MOST_BYTES", 5)
    calls.open.set()

    answers = await asyncio.gather(*pushing(admissions, *"abcd"))

    assert len(answers) == 4


def broken_contract() -> asyncpg.PostgresError:
    exc = asyncpg.PostgresError("not a zone")
    exc.sqlstate = "AP009"
    return exc


@pytest.mark.parametrize(
    "fault",
    [
        asyncpg.DataError("no such date"),
        asyncpg.CheckViolationError("not so"),
        asyncpg.ProgramLimitExceededError("too long for its index"),
        asyncpg.DeadlockDetectedError("with what others do"),
        asyncpg.SerializationError("with what others do"),
        broken_contract(),
    ],
    ids=lambda fault: fault.sqlstate,
)
async def test_a_post_that_the_database_refuses_fails_alone(calls, admissions, fault):
    calls.faults["d"] = fault
    pushes = pushing(admissions, *"abcdef")
    await calls.are_busy()

    calls.open.set()
    answers = await asyncio.gather(*pushes, return_exceptions=True)

    assert [answer.of for answer in answers if isinstance(answer, Verdict)] == list("abcef")
    assert answers[3] is calls.faults["d"]


@pytest.mark.parametrize(
    "fault",
    [
        asyncpg.LockNotAvailableError("after five seconds"),
        asyncpg.QueryCanceledError("after nine seconds"),
        asyncpg.DiskFullError("for everybody"),
        asyncpg.InsufficientPrivilegeError("for everybody"),
    ],
    ids=lambda fault: fault.sqlstate,
)
async def test_what_no_post_is_to_blame_for_is_not_tried_again_for_each(calls, admissions, fault):
    """Each would wait as long as all of them did."""
    calls.faults["d"] = fault
    pushes = pushing(admissions, *"abcdef")
    await calls.are_busy()

    calls.open.set()
    answers = await asyncio.gather(*pushes, return_exceptions=True)

    assert answers[2:] == [fault] * 4
    assert calls.batches == [["a"], ["b"], list("cdef")]


async def test_what_no_post_is_to_blame_for_also_ends_the_trying_one_by_one(calls, admissions):
    calls.faults["d"] = asyncpg.DataError("no such date")
    calls.faults["e"] = asyncpg.LockNotAvailableError("after five seconds")
    pushes = pushing(admissions, *"abcdefg")
    await calls.are_busy()

    calls.open.set()
    answers = await asyncio.gather(*pushes, return_exceptions=True)

    assert [answer.of for answer in answers[:3]] == list("abc")
    assert answers[3:] == [calls.faults[name] for name in "deee"]
    assert calls.batches[2:] == [list("cdefg"), ["c"], ["d"], ["e"]]


async def test_calls_that_follow_each_other_share_a_connection(calls, admissions):
    pushes = pushing(admissions, *"abcdef")
    await calls.are_busy()

    calls.open.set()
    await asyncio.gather(*pushes)

    assert (len(calls.batches), calls.connections) == (3, together.AT_ONCE)


async def test_a_connection_that_others_wait_for_is_given_back_after_each_call(calls, admissions):
    calls.others_wait = True
    pushes = pushing(admissions, *"abcdef")
    await calls.are_busy()

    calls.open.set()
    await asyncio.gather(*pushes)

    assert len(calls.batches) == calls.connections == 3


async def test_after_an_error_another_connection_is_taken(calls, admissions):
    calls.faults["a"] = calls.faults["b"] = asyncpg.ConnectionDoesNotExistError("gone")
    pushes = pushing(admissions, *"abcdef")
    await calls.are_busy()

    calls.open.set()
    await asyncio.gather(*pushes, return_exceptions=True)

    assert calls.connections == 2 * together.AT_ONCE


async def test_where_there_is_no_connection_to_have_all_are_told(calls, admissions):
    calls.away = NotConnected(OSError())

    answers = await asyncio.gather(*pushing(admissions, *"abcdef"), return_exceptions=True)

    assert answers == [calls.away] * 6
    assert calls.batches == []


async def test_what_may_have_been_committed_is_not_said_again(calls, admissions):
    """The senders are told to try again, and their receipts decide."""
    calls.faults["d"] = asyncpg.ConnectionDoesNotExistError("gone")
    pushes = pushing(admissions, *"abcdef")
    await calls.are_busy()

    calls.open.set()
    answers = await asyncio.gather(*pushes, return_exceptions=True)

    assert [isinstance(answer, Verdict) for answer in answers] == [True, True, False, False, False, False]
    assert len(calls.batches) == 3


async def test_whoever_has_given_up_is_left_out(calls, admissions):
    pushes = pushing(admissions, *"abcd")
    await calls.are_busy()
    pushes[2].cancel()
    await eventually(pushes[2].done)

    calls.open.set()
    await asyncio.gather(*pushes, return_exceptions=True)

    assert calls.batches == [["a"], ["b"], ["d"]]


async def test_a_line_goes_on_when_all_who_waited_have_given_up(calls, admissions):
    pushes = pushing(admissions, *"abcd")
    await calls.are_busy()
    for push in pushes[2:]:
        push.cancel()
    await asyncio.wait(pushes[2:])

    calls.open.set()
    await asyncio.gather(*pushes[:2])
    async with asyncio.timeout(10):
        later = await asyncio.gather(*pushing(admissions, *"efgh"))

    assert [verdict.of for verdict in later] == list("efgh")


async def test_one_endpoint_does_not_wait_for_another(calls, admissions):
    pushing(admissions, *"abcd")
    other = Endpoint(
        workspace_id=ENDPOINT.workspace_id,
        endpoint_id=EndpointId(uuid4()),
        workspace_status="active",
        max_payload_bytes=1024,
    )
    task = asyncio.create_task(admissions.admit(other, Push(post=Raw(b"{}"), payload_hash="other")))

    await eventually(lambda: ["other"] in calls.batches)
    calls.open.set()
    await task


async def test_a_line_is_bounded_and_whoever_comes_on_top_is_told_at_once(calls, admissions, monkeypatch):
    monkeypatch.setattr(together, "MOST_WAITING", 2)
    pushes = pushing(admissions, *"ab")
    await calls.are_busy()
    pushes += pushing(admissions, *"cde")

    answer = (await asyncio.gather(pushes[-1], return_exceptions=True))[0]
    calls.open.set()

    assert isinstance(answer, Crowded)
    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})
    assert [(await push).of for push in pushes[:-1]] == list("abcd")
