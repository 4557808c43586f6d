"""Of several replicas the one that serves a workspace is in time, and the others look a little later."""

from uuid import UUID

import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.claim.batch_size import OLDEST
from autopost_dispatcher.claim.other_replicas import BEHIND, OtherReplicas

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

    assert (others._due, others._stands_back) == ({}, set())


def test_standing_back_loses_no_slot() -> None:
    assert BEHIND < OLDEST
