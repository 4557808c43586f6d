"""Pushes of one endpoint share calls, and a failing one does not fail the others."""

import asyncio
from uuid import uuid4

import pytest
from autopost_contracts.ids import EndpointId
from autopost_ingest.admission import batching
from autopost_ingest.admission.batching import AdmissionBatcher
from autopost_ingest.errors import AtCapacity
from autopost_ingest.gateway import Endpoint, Push
from harness.eventually import eventually
from ingest.support.fake_gateway import ENDPOINT, Calls, pushing
from msgspec import Raw


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def admissions(calls: Calls) -> AdmissionBatcher:
    return AdmissionBatcher(calls, audit_deduped=False)  # type: ignore[arg-type]


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
    calls.routed = batching.FEW_CHANNELS
    first = pushing(admissions, *"abcdef")
    await calls.are_busy()
    calls.let_one_go()
    await eventually(lambda: len(calls.batches) == 3)
    calls.let_one_go()
    await eventually(lambda: calls.ended == 2)

    few = pushing(admissions, *"ghi")
    await eventually(lambda: len(admissions._queues[ENDPOINT.endpoint_id]._waiting) == 3)
    assert calls.batches == [["a"], ["b"], list("cdef")]

    enough = pushing(admissions, "j")
    await eventually(lambda: len(calls.batches) == 4)
    late = pushing(admissions, "k")
    calls.open.set()

    assert [(await push).of for push in (*first, *few, *enough, *late)] == list("abcdefghijk")
    assert calls.batches[3:] == [list("ghij"), ["k"]]


async def test_of_posts_to_few_channels_half_are_called_while_the_other_half_comes(calls, admissions, monkeypatch):
    monkeypatch.setattr(batching, "CALL_COST", 2)
    pushes = pushing(admissions, *"abcdefghijkl")
    await calls.are_busy()
    calls.let_one_go()
    await eventually(lambda: len(calls.batches) == 3)  # of the ten in line and the one that is answered now
    assert calls.batches == [["a"], ["b"], list("cdefgh")]

    calls.let_one_go()
    await eventually(lambda: calls.ended == 2)
    pushes += pushing(admissions, *"mnop")
    await eventually(lambda: len(admissions._queues[ENDPOINT.endpoint_id]._waiting) == 8)
    assert len(calls.batches) == 3

    pushes += pushing(admissions, "q")  # half as many again as the call has: they come faster than it takes them in
    await eventually(lambda: len(calls.batches) == 4)
    assert calls.batches[3] == list("ijklmnop")
    calls.open.set()
    assert [(await push).of for push in pushes] == list("abcdefghijklmnopq")


async def test_those_that_are_answered_just_now_count_among_those_that_come(calls, admissions, monkeypatch):
    monkeypatch.setattr(batching, "CALL_COST", 2)
    pushes = pushing(admissions, *"abcdefghijkl")
    await calls.are_busy()
    calls.let_one_go()
    await eventually(lambda: len(calls.batches) == 3)
    calls.let_one_go()
    await eventually(lambda: calls.ended == 2)
    pushes += pushing(admissions, *"mnop")
    await eventually(lambda: len(admissions._queues[ENDPOINT.endpoint_id]._waiting) == 8)

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

    await eventually(lambda: admissions._queues == {})


async def test_a_call_takes_no_more_deliveries_posts_and_bytes_than_it_should(calls, admissions, monkeypatch):
    monkeypatch.setattr(batching, "MAX_POSTS", 4)
    monkeypatch.setattr(batching, "MAX_DELIVERIES", 100)
    monkeypatch.setattr(batching, "MAX_BYTES", 35)
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
    calls.routed = batching.MAX_DELIVERIES // 2
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
    monkeypatch.setattr(batching, "MAX_BYTES", 5)
    calls.open.set()

    answers = await asyncio.gather(*pushing(admissions, *"abcd"))

    assert len(answers) == 4


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
    monkeypatch.setattr(batching, "MAX_WAITING", 2)
    pushes = pushing(admissions, *"ab")
    await calls.are_busy()
    pushes += pushing(admissions, *"cde")

    answer = (await asyncio.gather(pushes[-1], return_exceptions=True))[0]
    calls.open.set()

    assert isinstance(answer, AtCapacity)
    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})
    assert [(await push).of for push in pushes[:-1]] == list("abcd")
