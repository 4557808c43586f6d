"""Write refusal events: at most one per second for each endpoint and action, with a count.

The first refusal is written at once; later ones are counted here and written by the timer. The timer also flushes
counts that other replicas left in the database.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta

from autopost_contracts.events import Action
from autopost_runtime.http.web import HttpProblem
from autopost_runtime.postgres.errors import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from msgspec import Struct

from autopost_ingest.admission.refusal_samples import Sample, SampleStore
from autopost_ingest.errors import log_background_error
from autopost_ingest.gateway import Endpoint, Gateway

EVERY = timedelta(seconds=1)
FAILURES_KEPT = 1000

refusals = metrics.counter("autopost_ingress_refusals_total", "Refused requests by reason.")
dropped_failures = metrics.counter("autopost_ingress_failures_forgotten_total", "Failed requests that no run records.")
dropped_refusals = metrics.counter("autopost_ingress_refusals_forgotten_total", "Refused requests that no run records.")

Failure = tuple[Endpoint, str | None, str]
"""Endpoint, trace id and error code of a failed request."""


class PendingRefusal(Struct, kw_only=True):
    endpoint: Endpoint
    action: Action
    counter: str
    code: str
    trace_id: str | None
    count: int = 0
    sample: Sample | None = None
    payload_ref: str | None = None
    """Reference of the sample, once it is stored."""


class Refusals:
    def __init__(self, gateway: Gateway, samples: SampleStore, every: timedelta = EVERY) -> None:
        self._gateway = gateway
        self._samples = samples
        self._every = every.total_seconds()
        self._pending: dict[tuple[Endpoint, Action], PendingRefusal] = {}
        self._written_at: dict[tuple[Endpoint, Action], float] = {}
        self._failed: deque[Failure] = deque(maxlen=FAILURES_KEPT)
        self._flushing = asyncio.Lock()

    async def refuse(
        self, endpoint: Endpoint, action: Action, counter: str, code: str, sample: Callable[[], Sample] | None = None
    ) -> None:
        """Record one refused request of a known endpoint. One sample is stored per event."""
        key = (endpoint, action)
        new = PendingRefusal(endpoint=endpoint, action=action, counter=counter, code=code, trace_id=_trace_id())
        pending = self._pending.setdefault(key, new)
        pending.count, pending.code, pending.trace_id = pending.count + 1, code, new.trace_id
        if sample and pending.sample is None and pending.payload_ref is None:
            pending.sample = sample()
        if time.monotonic() - self._written_at.get(key, float("-inf")) >= self._every:
            await self._write(key)

    def fail(self, endpoint: Endpoint, code: str) -> None:
        """Record a request that failed on our side. The timer writes it: the response must not wait for a failing
        database.

        While the database stays down, the oldest are dropped and counted.
        """
        if len(self._failed) == FAILURES_KEPT:
            dropped_failures.add(1)
        self._failed.append((endpoint, _trace_id(), code))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self.flush()

    async def flush(self) -> None:
        """Also called before the database is closed; waits for a flush that is running."""
        async with self._flushing:
            await self._write_all()
            try:
                await self._gateway.flush_refusals()
            except Exception as exc:
                log_background_error(exc, "refusals.unflushed")

    async def _write_all(self) -> None:
        long_ago = time.monotonic() - self._every
        self._written_at = {key: at for key, at in self._written_at.items() if at > long_ago}
        for key in list(self._pending):
            await self._write(key)
        while self._failed and await self._write_failure(self._failed.popleft()):
            pass

    async def _write_failure(self, failure: Failure) -> bool:
        """``False`` when it must be retried later. It is removed from the deque first, which may fill up meanwhile."""
        try:
            await self._gateway.fail_push(*failure)
        except Exception as exc:
            log_background_error(exc, "refusals.failure_untold")
            later = is_retryable(exc)
            if later and len(self._failed) < FAILURES_KEPT:
                self._failed.appendleft(failure)
            else:
                dropped_failures.add(1)
            return not later
        return True

    async def _write(self, key: tuple[Endpoint, Action]) -> None:
        """A retryable error keeps the refusal for later, merged with newer ones.

        Any other error drops it and counts it: the endpoint may have been deleted.
        """
        pending = self._pending.pop(key, None)
        if pending is None:  # a request wrote it while the timer wrote another one
            return
        self._written_at[key] = time.monotonic()
        try:
            await self._keep_sample(pending)
            detail = {"code": pending.code, "payload_ref": pending.payload_ref}
            await self._gateway.refuse_ingress(
                pending.endpoint, pending.action, pending.counter, detail, pending.trace_id, pending.count
            )
        except Exception as exc:
            log_background_error(exc, "refusals.untold")
            if is_retryable(exc):
                self._retry_later(key, pending)
            else:
                dropped_refusals.add(pending.count)

    def _retry_later(self, key: tuple[Endpoint, Action], pending: PendingRefusal) -> None:
        later = self._pending.setdefault(key, pending)
        if later is not pending:
            later.count += pending.count
            later.payload_ref = later.payload_ref or pending.payload_ref

    async def _keep_sample(self, pending: PendingRefusal) -> None:
        if pending.sample and pending.payload_ref is None:
            pending.payload_ref = await self._samples.keep(pending.endpoint, pending.sample)
        pending.sample = None


class NoRefusals(Refusals):
    """Records nothing; for dry runs."""

    def __init__(self) -> None:
        pass

    async def refuse(self, *_: object, **__: object) -> None:
        pass

    def fail(self, *_: object, **__: object) -> None:
        pass


def refuse(reason: str, problem: HttpProblem) -> HttpProblem:
    """Count the refusal in the metrics and pass the problem on."""
    refusals.add(1, {"reason": reason})
    return problem


def _trace_id() -> str | None:
    return telemetry.current_trace_id()
