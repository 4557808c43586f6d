"""Tell what was refused: at most once a second for each endpoint, with how often, and never only on the next refusal.

The first refusal is told at once, those after it are counted here and told by the timer. The timer also tells what
other replicas counted in the database and nobody came back for.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta

from autopost_contracts.events import Action
from autopost_runtime import metrics, telemetry
from autopost_runtime.database_errors import is_retryable
from autopost_runtime.web import Problem
from msgspec import Struct

from autopost_ingest.gateway import Endpoint, Gateway
from autopost_ingest.samples import Sample, Samples
from autopost_ingest.trouble import put_up_with

EVERY = timedelta(seconds=1)
FAILURES_KEPT = 1000

refusals = metrics.counter("autopost_ingress_refusals_total", "Requests refused, by reason.")
forgotten = metrics.counter("autopost_ingress_failures_forgotten_total", "Failed requests of which no run will tell.")
forgotten_refusals = metrics.counter(
    "autopost_ingress_refusals_forgotten_total", "Refused requests of which no run will tell."
)

Failure = tuple[Endpoint, str | None, str]
"""Whose request it was, its trace and its code."""


class Untold(Struct, kw_only=True):
    endpoint: Endpoint
    action: Action
    counter: str
    code: str
    trace_id: str | None
    count: int = 0
    sample: Sample | None = None
    payload_ref: str | None = None
    """Of the sample, once it is kept."""


class Refusals:
    def __init__(self, gateway: Gateway, samples: Samples, every: timedelta = EVERY) -> None:
        self._gateway = gateway
        self._samples = samples
        self._every = every.total_seconds()
        self._untold: dict[tuple[Endpoint, Action], Untold] = {}
        self._told_at: dict[tuple[Endpoint, Action], float] = {}
        self._failed: deque[Failure] = deque(maxlen=FAILURES_KEPT)
        self._flushing = asyncio.Lock()

    async def refuse(
        self, endpoint: Endpoint, action: Action, counter: str, code: str, sample: Callable[[], Sample] | None = None
    ) -> None:
        """One request of a known endpoint was refused. Of those that are told together one sample is kept."""
        key = (endpoint, action)
        new = Untold(endpoint=endpoint, action=action, counter=counter, code=code, trace_id=_trace_id())
        untold = self._untold.setdefault(key, new)
        untold.count, untold.code, untold.trace_id = untold.count + 1, code, new.trace_id
        if sample and untold.sample is None and untold.payload_ref is None:
            untold.sample = sample()
        if time.monotonic() - self._told_at.get(key, float("-inf")) >= self._every:
            await self._tell(key)

    def fail(self, endpoint: Endpoint, code: str) -> None:
        """One request failed on our side. Told by the timer: the answer must not wait for a database in trouble.

        While it stays in trouble the oldest are forgotten, and only counted.
        """
        if len(self._failed) == FAILURES_KEPT:
            forgotten.add(1)
        self._failed.append((endpoint, _trace_id(), code))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self.flush()

    async def flush(self) -> None:
        """Also the last thing before the database is closed: it waits for what the timer is just telling."""
        async with self._flushing:
            await self._tell_all()
            try:
                await self._gateway.flush_refusals()
            except Exception as exc:
                put_up_with(exc, "refusals.unflushed")

    async def _tell_all(self) -> None:
        long_ago = time.monotonic() - self._every
        self._told_at = {key: at for key, at in self._told_at.items() if at > long_ago}
        for key in list(self._untold):
            await self._tell(key)
        while self._failed and await self._tell_failure(self._failed.popleft()):
            pass

    async def _tell_failure(self, failure: Failure) -> bool:
        """``False`` when it has to wait. It is taken out before: others may come meanwhile and need its room."""
        try:
            await self._gateway.fail_push(*failure)
        except Exception as exc:
            put_up_with(exc, "refusals.failure_untold")
            later = is_retryable(exc)
            if later and len(self._failed) < FAILURES_KEPT:
                self._failed.appendleft(failure)
            else:
                forgotten.add(1)
            return not later
        return True

    async def _tell(self, key: tuple[Endpoint, Action]) -> None:
        """What cannot be told now is told later, together with what comes until then.

        What never can is forgotten, and only counted: the endpoint may be deleted by now.
        """
        untold = self._untold.pop(key, None)
        if untold is None:  # a request has told it while the timer told of another endpoint
            return
        self._told_at[key] = time.monotonic()
        await self._keep_sample(untold)
        detail = {"code": untold.code, "payload_ref": untold.payload_ref}
        try:
            await self._gateway.refuse_ingress(
                untold.endpoint, untold.action, untold.counter, detail, untold.trace_id, untold.count
            )
        except Exception as exc:
            put_up_with(exc, "refusals.untold")
            if is_retryable(exc):
                self._tell_later(key, untold)
            else:
                forgotten_refusals.add(untold.count)

    def _tell_later(self, key: tuple[Endpoint, Action], untold: Untold) -> None:
        later = self._untold.setdefault(key, untold)
        if later is not untold:
            later.count += untold.count
            later.payload_ref = later.payload_ref or untold.payload_ref

    async def _keep_sample(self, untold: Untold) -> None:
        if untold.sample and untold.payload_ref is None:
            untold.payload_ref = await self._samples.keep(untold.endpoint, untold.sample)
        untold.sample = None


class Silence(Refusals):
    """For dry runs, which leave nothing."""

    def __init__(self) -> None:
        pass

    async def refuse(self, *_: object, **__: object) -> None:
        pass

    def fail(self, *_: object, **__: object) -> None:
        pass


def refuse(reason: str, problem: Problem) -> Problem:
    """Counts it for the metrics."""
    refusals.add(1, {"reason": reason})
    return problem


def _trace_id() -> str | None:
    return telemetry.current_trace_id()
