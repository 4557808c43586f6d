"""Calls keep the distance of their slots, whatever held them up."""

import pytest
from autopost_dispatcher import pace
from autopost_dispatcher.pace import LATE, Pace, has_missed
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.claims import claim

STEP = 0.037
RATED = {"pace": 1.0}


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
    assert Pace().wait(claim(**RATED), clock.now) == 0


def test_calls_that_were_held_up_keep_the_distance_of_their_slots(clock):
    paced = Pace()
    slots = [clock.now + n * STEP for n in range(4)]
    clock.now += 2 * STEP

    waits = [paced.wait(claim(**RATED), slot) for slot in slots]

    assert waits == pytest.approx([n * STEP * pace.CATCH_UP for n in range(4)])


def test_another_token_does_not_wait(clock):
    paced = Pace()
    paced.wait(claim(**RATED), clock.now - 0.2)

    assert paced.wait(claim(**RATED, rate_group="other"), clock.now) == 0


def test_a_call_that_missed_its_slot_needs_another(clock):
    assert Pace().wait(claim(**RATED), clock.now - LATE - 0.001) is None


def test_without_a_rate_nothing_is_late(clock):
    assert Pace().wait(claim(), clock.now - 60) == 0
    assert not has_missed(claim(), clock.now - 60)


def test_a_process_that_stood_still_after_its_turn_was_told_has_missed_the_slot(clock):
    """Counted from the slot: late when the turn was told and late again after it would be twice too late."""
    slot = clock.now
    clock.now += LATE * 0.8
    assert Pace().wait(claim(**RATED), slot) == 0
    assert not has_missed(claim(**RATED), slot)

    clock.now += LATE * 0.8

    assert has_missed(claim(**RATED), slot)


@given(st.lists(st.floats(0, 0.5), min_size=2, max_size=60))
def test_whatever_the_delays_no_window_holds_more_than_its_slots_and_a_few(delays):
    """One slot every 37 ms, each call held up by something: never 31 in a second."""
    clock, paced, sent = Clock(), Pace(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "time", clock)
        free = start = clock.now
        for number, delay in enumerate(delays):
            slot = start + number * STEP
            clock.now = max(clock.now, slot) + delay * (delay > 0.3)
            wait = paced.wait(claim(**RATED), slot)
            if wait is not None:
                free = max(free, clock.now + wait)
                sent.append(clock.now + wait)

    ordered = sorted(sent)
    assert ordered == sent
    assert all(late - early >= 1.0 for early, late in zip(ordered, ordered[30:], strict=False))
