"""Of pushes that are admitted together each suffers its own fault alone, and a connection is kept while it is good."""

import asyncio

import asyncpg
import pytest
from autopost_ingest.admission import batching as together
from autopost_ingest.admission.batching import AdmissionBatcher
from autopost_ingest.gateway import Verdict
from autopost_runtime.postgres.pool import NotConnected
from ingest.support.fake_gateway import Calls, pushing


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def admissions(calls: Calls) -> AdmissionBatcher:
    return AdmissionBatcher(calls, audit_deduped=False)  # type: ignore[arg-type]


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


async def test_a_conflict_is_asked_once_more_alone_and_the_content_is_looked_up(calls, admissions):
    calls.faults["a"] = asyncpg.SerializationError("its content was stored with other tags")
    calls.open.set()

    [answer] = await asyncio.gather(*pushing(admissions, "a"), return_exceptions=True)

    assert answer is calls.faults["a"]
    assert (calls.batches, calls.looked_up) == ([["a"], ["a"]], ["a"])


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

    assert (len(calls.batches), calls.connections) == (3, together.MAX_CALLS)


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

    assert calls.connections == 2 * together.MAX_CALLS


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
