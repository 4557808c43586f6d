"""Calls keep the distance of their slots, whatever held them up."""

from uuid import UUID, uuid4

import pytest
from autopost_runtime.lifecycle import pace
from autopost_runtime.lifecycle.pace import CATCH_UP, HEAD_ROOM, KEPT, LATE, CallPacer, PacedCall, has_missed
from hypothesis import given
from hypothesis import strategies as st

STEP = 0.037
WORKSPACE = uuid4()


def call(*, group: str = "default", place: UUID | None = None, interval: float = 1.0) -> PacedCall:
    return PacedCall((WORKSPACE, "telegram", group), (WORKSPACE, place or uuid4()), interval)


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(pace, "time", made)
    return made


def test_a_call_at_its_slot_goes_at_once(clock):
    assert CallPacer().wait(call(), clock.now) == 0


def test_delayed_calls_keep_the_intervals_of_their_slots(clock):
    paced = CallPacer()
    slots = [clock.now + n * STEP for n in range(4)]
    clock.now += LATE * 0.9

    waits = [paced.wait(call(), slot) for slot in slots]

    assert waits == pytest.approx([n * STEP * pace.CATCH_UP for n in range(4)])


def test_another_token_does_not_wait(clock):
    paced = CallPacer()
    paced.wait(call(), clock.now - 0.2)

    assert paced.wait(call(group="other"), clock.now) == 0


def test_a_call_that_missed_its_slot_needs_another(clock):
    assert CallPacer().wait(call(), clock.now - LATE - 0.001) is None


def test_without_a_rate_nothing_is_late(clock):
    assert CallPacer().wait(call(interval=0.0), clock.now - 60) == 0
    assert not has_missed(0.0, clock.now - 60)


def test_a_process_that_stalled_after_its_wait_has_missed_the_slot(clock):
    """Counted from the slot: late when the turn was told and late again after it would be twice too late."""
    slot = clock.now
    clock.now += LATE * 0.8
    assert CallPacer().wait(call(), slot) == 0
    assert not has_missed(1.0, slot)

    clock.now += LATE * 0.8

    assert has_missed(1.0, slot)


def test_a_channel_keeps_its_distance_whatever_its_group_sends_in_between(clock):
    """One that goes out late is followed by one on time: the distance of their slots, less what catches up."""
    paced, channel, step = CallPacer(), uuid4(), 1 / 0.9
    slot = clock.now
    clock.now = late = slot + LATE
    paced.wait(call(place=channel), slot)
    for _ in range(20):
        clock.now += step / 22
        paced.wait(call(), clock.now)

    clock.now = slot + step
    wait = paced.wait(call(place=channel), clock.now)

    assert wait is not None
    assert clock.now + wait - late >= step * CATCH_UP - 1e-9


def test_after_an_upload_the_channel_keeps_its_distance_from_the_end_of_it(clock):
    """With several deliveries of a channel in flight, the next slot was given while the upload was under way."""
    paced, channel, step = CallPacer(), uuid4(), 1 / 0.9
    rated, slot = call(interval=step, place=channel), clock.now
    paced.wait(rated, slot)
    clock.now += step
    paced.uploaded(rated)

    given_during_the_upload = paced.wait(rated, slot + step)
    clock.now += step

    assert given_during_the_upload is None
    assert paced.wait(rated, slot + 2 * step) == 0


def test_channels_and_tokens_without_calls_cost_nothing_after_some_seconds(clock):
    paced = CallPacer()
    for number in range(1000):
        paced.wait(call(group=str(number)), clock.now)
        clock.now += STEP

    clock.now += KEPT
    paced.wait(call(), clock.now)

    assert (len(paced._last), len(paced._last_in)) == (1, 1)


def test_nothing_is_forgotten_that_a_call_would_wait_for(clock):
    """One that goes out late, and then calls at the time of their slots, until the delay is caught up with."""
    never, rated = CallPacer(), call()
    paced, slot = CallPacer(), clock.now
    clock.now += LATE
    waits = []
    for number in range(round(KEPT / STEP)):
        clock.now = max(clock.now, slot + number * STEP)
        paced.wait(call(group="other"), clock.now)
        waits.append((paced.wait(rated, slot + number * STEP), never.wait(rated, slot + number * STEP)))

    assert all(one == other for one, other in waits)
    assert any(one for one, _ in waits)
    assert waits[-1] == (0, 0)


LIMITS = [1, 2, 5, 30]
"""Calls per second that platforms allow; what is configured is nine tenths of it."""


@pytest.mark.parametrize("limit", LIMITS)
@given(late=st.lists(st.tuples(st.booleans(), st.floats(0, 0.2)), min_size=40, max_size=70))
def test_however_late_calls_are_most_of_the_head_room_is_left_for_their_way(limit, late):
    """Two replicas, each with its own pace: n + 1 calls where n are allowed span a second and half the head room."""
    clock, replicas, sent = Clock(), (CallPacer(), CallPacer()), []
    step, channel = 1 / (0.9 * limit), uuid4()
    rated = call(interval=step, place=channel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "time", clock)
        for number, (first, delay) in enumerate(late):
            slot = 1000.0 + number * step
            clock.now = slot + delay
            wait = replicas[first].wait(rated, slot)
            if wait is not None:
                sent.append(clock.now + wait)

    sent.sort()
    spans = [last - first for first, last in zip(sent, sent[limit:], strict=False)]
    assert all(span >= 1 + HEAD_ROOM / 2 - 1e-6 for span in spans)


@given(st.lists(st.floats(0, 0.5), min_size=2, max_size=60))
def test_whatever_the_delays_no_window_holds_more_than_its_slots_and_a_few(delays):
    """One slot every 37 ms, each call held up by something: never 31 in a second."""
    clock, paced, sent = Clock(), CallPacer(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "time", clock)
        free = start = clock.now
        for number, delay in enumerate(delays):
            slot = start + number * STEP
            clock.now = max(clock.now, slot) + delay * (delay > 0.3)
            wait = paced.wait(call(), slot)
            if wait is not None:
                free = max(free, clock.now + wait)
                sent.append(clock.now + wait)

    ordered = sorted(sent)
    assert ordered == sent
    assert all(late - early >= 1.0 for early, late in zip(ordered, ordered[30:], strict=False))
