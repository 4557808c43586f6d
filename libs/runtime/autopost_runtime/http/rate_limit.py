"""Local token bucket per endpoint: refuses requests that are certainly too fast without a database call.

It has the depth of the shared bucket in the database and counts only this replica, so it never refuses a request that
the shared one would accept.
"""

import time
from collections import OrderedDict
from datetime import timedelta

from autopost_contracts.ids import EndpointId

from autopost_runtime.http.endpoint_cache import Endpoint

MAX_ENDPOINTS = 10_000


class RateLimiter:
    def __init__(self) -> None:
        self._full_until: OrderedDict[EndpointId, float] = OrderedDict()

    def acquire(self, endpoint: Endpoint) -> timedelta | None:
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
        if len(self._full_until) > MAX_ENDPOINTS:
            self._full_until.popitem(last=False)
        return None
