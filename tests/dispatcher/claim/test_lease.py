"""What takes long stays ours, and what is no longer ours is known to be lost."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from autopost_contracts.ids import DeliveryId, WorkspaceId
from autopost_dispatcher.claim.lease import LeaseRenewal
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.gateway import Claim
from autopost_runtime.config.load import ConfigError
from dispatcher.support.sample_claims import job

LEASE = timedelta(seconds=60)


class Leases:
    def __init__(self, *, ours: bool = True, error: Exception | None = None) -> None:
        self.asked: list[DeliveryId] = []
        self._ours = ours
        self._error = error

    async def renew_leases(self, workspace: WorkspaceId, claims: Sequence[Claim], lease: timedelta) -> set[DeliveryId]:
        self.asked += [claim.delivery_id for claim in claims]
        if self._error:
            raise self._error
        return set(self.asked) if self._ours else set()


async def test_only_old_leases_are_renewed() -> None:
    leases, fresh, old = Leases(), job(lease=LEASE), job(lease=LEASE / 2)

    await LeaseRenewal(leases, LEASE, lambda: [fresh, old]).renew_old()

    assert leases.asked == [old.claim.delivery_id]
    assert old.lease.left() > LEASE.total_seconds() * 0.9


async def test_an_invalid_claim_is_lost_and_not_renewed_again() -> None:
    leases, old = Leases(ours=False), job(lease=LEASE / 2)
    renewal = LeaseRenewal(leases, LEASE, lambda: [old])

    await renewal.renew_old()
    await renewal.renew_old()

    assert old.lease.is_lost
    assert len(leases.asked) == 1


async def test_a_database_that_is_away_leaves_the_lease_as_it_was() -> None:
    old = job(lease=LEASE / 2)

    await LeaseRenewal(Leases(error=ConnectionRefusedError()), LEASE, lambda: [old]).renew_old()

    assert not old.lease.is_lost
    assert old.lease.left() < LEASE.total_seconds()


@pytest.mark.parametrize("setting", ["provider_timeout", "upload_timeout"])
def test_a_timeout_that_outlives_the_lease_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"AUTOPOST_{setting.upper()} is 55s"):
        DispatcherConfig(database_url="postgresql://h/d", sending_lease=LEASE, **{setting: timedelta(seconds=55)})
