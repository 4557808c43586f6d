"""When a call may really go out: at its slot, and never much later.

The database spaces slots; what it cannot see is a worker that is held up between the claim and the call. Calls that
pile up meanwhile would leave at once, and the provider counts arrivals, not slots. So calls of one token keep their
distance here as well, and one that is far behind its slot is not sent: it goes back and gets a new one.
"""

import time
from uuid import UUID

from autopost_dispatcher.claim import Job

LATE = 1.0
"""Seconds behind its slot after which a call is given back."""
CATCH_UP = 0.95
"""Of the group's distance: calls that were held up make up for it this little."""
FINE = 0.001
"""Distances below are not worth a timer."""


class Pace:
    def __init__(self) -> None:
        self._free: dict[tuple[UUID, str, str], float] = {}

    def wait(self, job: Job, slot: float) -> float | None:
        """At its slot or later: seconds to wait before the call, ``None`` when its slot is too long ago.

        Whoever asks takes the time it is given, so ask only when the slot has come.
        """
        now = time.monotonic()
        claim = job.claim
        distance = claim.group_pace.total_seconds() * CATCH_UP
        if distance < FINE:
            return None if now - slot > LATE else 0.0
        group = (claim.workspace_id, claim.platform, claim.rate_group)
        at = max(now, self._free.get(group, 0.0))
        if at - slot > LATE:
            return None
        self._free[group] = at + distance
        return at - now
