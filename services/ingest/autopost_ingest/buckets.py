"""The local bucket of each endpoint: what certainly goes too fast is turned away without asking the database.

As deep as the shared gate and filled by this replica alone, so it lets through whatever the gate would.
"""

import time
from collections import OrderedDict
from datetime import timedelta

from autopost_contracts.ids import EndpointId

from autopost_ingest.gateway import Endpoint

AT_MOST = 10_000


class Buckets:
    def __init__(self) -> None:
        self._full_until: OrderedDict[EndpointId, float] = OrderedDict()

    def take(self, endpoint: Endpoint) -> timedelta | None:
        """``None`` when the request may pass, else how long to wait."""
        if not endpoint.ingress_rps:
            return None
        step = 1 / endpoint.ingress_rps
        depth = max(1.0, step)
        now = time.monotonic()
        full_until = max(self._full_until.get(endpoint.endpoint_id, now), now)
        if full_until + step > now + depth:
            return timedelta(seconds=full_until + step - now - depth)
        self._full_until[endpoint.endpoint_id] = full_until + step
        self._full_until.move_to_end(endpoint.endpoint_id)
        if len(self._full_until) > AT_MOST:
            self._full_until.popitem(last=False)
        return None
