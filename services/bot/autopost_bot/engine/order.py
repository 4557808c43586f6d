"""Check that the updates of a chat were handled in the provider's order.

An update may only be handled before an earlier one if that came after it: then it was handled when the other was not
there yet.
"""

from datetime import datetime

Place = tuple[int, int, datetime, str]
"""By what a take orders the updates of a chat: provider_ts, provider_seq, ts, key."""

MOST_KEPT = 100


class HandledOrder:
    """Of one chat; ``is_late`` is called in the order in which updates were handled."""

    def __init__(self) -> None:
        self._kept: list[tuple[Place, datetime]] = []
        """Handled updates that no other one exceeds in both place and arrival: usually one."""

    def is_late(self, place: Place, arrived: datetime, *, waits: bool) -> bool:
        """Whether an update was handled before this one that comes after it and was stored after it.

        ``waits``: it is not handled yet, so nothing can be late compared with it.
        """
        if any(other > place and came > arrived for other, came in self._kept):
            return True
        if not waits:
            left = [one for one in self._kept if one[0] > place or one[1] > arrived]
            self._kept = [*left, (place, arrived)][-MOST_KEPT:]
        return False
