"""Of several replicas the one that serves a workspace is in time, and the others look a little later."""

from uuid import UUID

import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.claim.batch_size import OLDEST
from autopost_dispatcher.claim.other_replicas import AFTER, BEHIND, FAR_BEHIND, OtherReplicas

A, B = WorkspaceId(UUID(int=1)), WorkspaceId(UUID(int=2))


def test_the_one_that_came_too_late_stands_back_until_it_serves_itself() -> None:
    others = OtherReplicas()
    others.serves(A, 0.0)

    assert others.was_before(A, 1.0) == pytest.approx(1.0 + BEHIND)
    others.serves(A, 0.0)
    others.serves(A, 3600.0)
    assert others.was_before(A, 1.0) == pytest.approx(1.0)


def test_a_look_before_the_slot_says_nothing_of_another_replica() -> None:
    """A commit may ask for a look before the rate has the next slot."""
    others = OtherReplicas()
    others.serves(A, 3600.0)

    assert others.was_before(A, 1800.0) == pytest.approx(1800.0)
    assert others.was_before(B, 1.0) == pytest.approx(1.0)


def test_what_has_nothing_to_send_is_forgotten() -> None:
    others = OtherReplicas()
    others.serves(A, 0.0)
    others.was_before(A, 0.0)
    others.forget(A)

    assert (others._due, others._lost) == ({}, {})


@pytest.mark.parametrize(("has_calls", "behind"), [(False, FAR_BEHIND), (True, BEHIND)])
def test_after_many_slots_of_another_it_looks_seldom_unless_its_own_calls_took_them(
    has_calls: bool, behind: float
) -> None:
    others = OtherReplicas(lambda _: has_calls)
    others.serves(A, 0.0)

    waits = [others.was_before(A, 0.0) for _ in range(AFTER + 1)]

    assert waits == pytest.approx([BEHIND] * AFTER + [behind])
    others.serves(A, 0.0)
    assert others.was_before(A, 0.0) == pytest.approx(BEHIND)


def test_standing_back_loses_no_slot() -> None:
    assert BEHIND < OLDEST
