"""The ledger's judge: silent while a rate is kept, loud about every slot that does not."""

import pytest
from autopost_bench.report.ledger import by_key, over_limit, too_close, use

STEP = 1 / 27
EVEN = [number * STEP for number in range(200)]


def test_even_slots_are_sound():
    assert too_close(EVEN, STEP) == 0


def test_slots_rounded_to_the_microsecond_are_sound():
    assert too_close([round(slot, 6) for slot in EVEN], STEP) == 0


def test_a_slot_may_be_early_by_the_tolerance_and_no_more():
    early = EVEN[:100] + [slot - 0.05 for slot in EVEN[100:]]
    too_early = EVEN[:100] + [slot - 0.051 for slot in EVEN[100:]]

    assert too_close(early, STEP) == 0
    assert too_close(too_early, STEP) >= 99


def test_one_slot_given_twice_is_found_when_its_step_is_longer_than_the_tolerance():
    slots = [0.0, 1.0, 1.0, 2.0]

    assert too_close(slots, 1.0) == 2


def test_a_burst_after_idling_is_found():
    slots = [0.0, 100.0, 100.01, 100.02, 100.03]

    assert too_close(slots, STEP) == 2


def test_a_rate_a_little_too_high_is_found_over_a_long_run_only():
    fast = [number / 28 for number in range(200)]

    assert too_close(fast[:30], STEP) == 0
    assert too_close(fast, STEP) > 100


def test_idle_time_earns_nothing_and_hides_nothing():
    slots = [0.0, 1000.0, 1000.0 + STEP / 8, *(2000.0 + slot for slot in EVEN)]

    assert too_close(slots, 0.5) > 0


@pytest.mark.parametrize("count, over", [(30, 0), (31, 1), (33, 3)])
def test_a_window_holds_as_many_as_the_provider_allows(count, over):
    arrivals = [number * 0.99 / count for number in range(count)]

    assert over_limit(arrivals, 30) == over


def test_a_window_is_half_open():
    assert over_limit([0.0, 1.0], 1) == 0
    assert over_limit([0.0, 0.999], 1) == 1


@pytest.mark.parametrize(
    "gates, expected",
    [
        ([EVEN], 1),
        ([EVEN[::2]], 0.5),
        ([EVEN[:100]], 0.5),
        ([EVEN, ()], 0.5),
        ([EVEN, [slot + 0.5 * STEP for slot in EVEN]], 1),
        ([EVEN[40:]], 0.8),
    ],
    ids=["all", "every other", "a stall at the end", "one that never starts", "one that starts later", "a late start"],
)
def test_use_is_what_came_of_all_that_could(gates, expected):
    assert use(gates, 27, since=0.5 * STEP, until=EVEN[-1] + 1e-6) == pytest.approx(expected, abs=0.01)


def test_what_comes_after_the_time_is_not_counted():
    assert use([EVEN], 27, since=0, until=EVEN[99] + 1e-6) == 1


def test_slots_are_judged_gate_by_gate():
    pairs = [("a", 1.0), ("b", 1.0), ("a", 2.0)]

    assert by_key(pairs) == {"a": [1.0, 2.0], "b": [1.0]}
