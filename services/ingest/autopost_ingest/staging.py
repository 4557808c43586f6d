"""Staged posts: fetch their media under a lease, then enqueue them like any other.

A post is leased to one worker of all replicas and ends in one transaction that checks the lease. Whoever stages a post
wakes the workers of its own process; the others find it by looking.

A sender is told that a medium is gone, and sends something else. Nobody does so for an item of a source: it goes
without that medium, as long as something is left of it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

from autopost_contracts.payload import MediaItem, PostRequest
from autopost_runtime import metrics, telemetry
from autopost_runtime.cancelling import end
from autopost_runtime.fetch import Unfetched
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable
from autopost_runtime.service import Service
from msgspec import Struct, convert
from msgspec.structs import replace
from yarl import URL

from autopost_ingest.bring import Bringer, LeaseLost
from autopost_ingest.download import Unstored
from autopost_ingest.enqueue import Enqueuer
from autopost_ingest.materialize import Materializer
from autopost_ingest.normalize import Refused, media_type, normalize
from autopost_ingest.staged_gateway import StagedGateway, StagedPost
from autopost_ingest.trouble import put_up_with

ATTEMPTS = 5
"""What a server that does not give its picture is worth."""

OUR_ATTEMPTS = 20
"""What a post is worth when the fault is ours; with the waits between them these are two hours."""

GIVING_BACK = timedelta(seconds=4)
"""How long a stop waits for that; a lease that was not given back runs out by itself."""

ended = metrics.counter("autopost_staged_posts_total", "Staged posts worked on, by how that ended.")


class Pace(Struct, frozen=True, kw_only=True):
    concurrency: int
    per_workspace: int
    lease: timedelta
    poll_interval: timedelta


class Failure(Struct, frozen=True):
    """Why a post has no media this time, in the words of its event."""

    error: dict[str, Any]
    attempts: int
    retry_after: timedelta | None = None


class UnfetchedItem(Exception):  # noqa: N818  named for what happened
    """Which medium of the post could not be had, and why."""

    def __init__(self, place: int, url: str, why: Unfetched) -> None:
        super().__init__(why.code)
        self.place, self.url, self.why = place, url, why


class Workers:
    def __init__(
        self,
        gateway: StagedGateway,
        bringer: Bringer,
        materializer: Materializer,
        enqueuer: Enqueuer,
        pace: Pace,
        *,
        staged: asyncio.Event,
    ) -> None:
        self._gateway = gateway
        self._bringer = bringer
        self._materializer = materializer
        self._enqueuer = enqueuer
        self._pace = pace
        self._tasks: set[asyncio.Task[None]] = set()
        self._look = staged
        self._stopping = False

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncIterator[None]:
        """Until the ``async with`` is left; then every lease is given back."""
        loop = service.spawn(self._run(), "staging")
        try:
            yield
        finally:
            self._stopping = True
            self._look.set()
            await asyncio.wait({loop})
            await self._give_back()

    async def _give_back(self) -> None:
        """Cancelled once and no more: each still has to tell the database."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GIVING_BACK.total_seconds())

    async def _run(self) -> None:
        """Never cancelled inside a lease call: what it leased would be nobody's."""
        while not self._stopping:
            self._look.clear()
            await self._lease()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.poll_interval.total_seconds()):
                    await self._look.wait()

    async def _lease(self) -> None:
        room = self._pace.concurrency - len(self._tasks)
        if room <= 0:
            return
        try:
            leased = await self._gateway.lease_staged_posts(room, self._pace.per_workspace, self._pace.lease)
        except Exception as exc:
            put_up_with(exc, "staging.lease_failed")
            return
        for post in leased:
            task = asyncio.create_task(self._work(post), name=f"staged {post.post_id}")
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._look.set()
        if not task.cancelled() and (exc := task.exception()):
            get_logger().error("staging.failed", exc_info=exc)

    async def _work(self, post: StagedPost) -> None:
        """Whatever happens, the post is finished, put back, given up or given back; only a lost lease ends silently."""
        work = asyncio.create_task(self._materialize(post))
        keeper = asyncio.create_task(self._keep(post))
        try:
            await asyncio.wait({work, keeper}, return_when=asyncio.FIRST_COMPLETED)
            verdict = await self._judged(post, work) if work.done() else keeper.result()
            ended.add(1, {"verdict": verdict})
        except asyncio.CancelledError:
            await end({work})
            await self._gateway.release_staged_post(post)
            raise
        finally:
            await end({work, keeper})

    async def _keep(self, post: StagedPost) -> str:
        """Renews the lease until it is lost."""
        while True:
            await asyncio.sleep(self._pace.lease.total_seconds() / 3)
            try:
                if not await self._gateway.renew_staged_post(post, self._pace.lease):
                    return "stale"
            except Exception as exc:
                if not is_retryable(exc):
                    raise

    async def _judged(self, post: StagedPost, work: "asyncio.Task[str]") -> str:
        exc = work.exception()
        if exc is None:
            return work.result()
        failure = _failure(exc)
        if failure is None:
            return "stale"
        log = get_logger(post_id=str(post.post_id), workspace_id=str(post.workspace_id), attempt=post.attempt)
        unexpected = failure.error["code"] == "internal"
        log.warning("staging.media_failed", exc_info=exc if unexpected else None, **failure.error)
        return await self._gateway.fail_staged_post(post, failure.error, failure.attempts, failure.retry_after)

    async def _materialize(self, post: StagedPost) -> str:
        with telemetry.tracer().start_as_current_span(
            "materialize", context=telemetry.context_from(post.traceparent)
        ) as span:
            span.set_attribute("autopost.workspace_id", str(post.workspace_id))
            if post.attempt > OUR_ATTEMPTS:  # whoever had it before never came back to say why
                raise Unfetched("worker_lost", final=True)
            request, lost = await self._with_media(post, convert(post.request, PostRequest))
            normalized = await self._materializer.materialize(post.workspace_id, normalize(request))
            finished = await self._enqueuer.finish(self._gateway, post, request, normalized, lost)
            span.set_attribute("autopost.verdict", finished.verdict)
            return finished.verdict

    async def _with_media(self, post: StagedPost, request: PostRequest) -> tuple[PostRequest, list[dict[str, Any]]]:
        """One after the other, so that a post of a hundred pictures is no more of a burden than a post of one.

        With the errors of those that it goes without.
        """
        media: list[MediaItem] = []
        lost: list[UnfetchedItem] = []
        for place, item in enumerate(request.media):
            try:
                media.append(await self._stored(post, place, item))
            except UnfetchedItem as exc:
                if not post.is_pulled or not _given_up(exc, post):
                    raise
                lost.append(exc)
        if lost and not (media or request.text or request.links):
            raise lost[0]
        return replace(request, media=tuple(media)), [_told(each) for each in lost]

    async def _stored(self, post: StagedPost, place: int, item: MediaItem) -> MediaItem:
        if item.url is None:
            return item
        try:
            blob_ref = await self._bringer.bring(post, item.url.strip(), media_type(item))
        except Unfetched as why:
            raise UnfetchedItem(place, item.url, why) from why
        return replace(item, url=None, blob_ref=blob_ref)


def _failure(exc: BaseException) -> Failure | None:
    """``None`` when the post is no longer ours."""
    match exc:
        case LeaseLost():
            return None
        case UnfetchedItem():
            return Failure(_told(exc), _worth(exc), exc.why.retry_after)
        case Unfetched():
            return Failure({"code": exc.code}, 0)
        case Refused():
            return Failure({"code": "refused", "field": exc.field, "message": exc.reason}, 0)
        case Unstored():
            return Failure({"code": "store_away"}, OUR_ATTEMPTS)
        case _:
            return Failure({"code": "internal", "message": type(exc).__name__}, OUR_ATTEMPTS)


def _told(exc: UnfetchedItem) -> dict[str, Any]:
    return {"code": exc.why.code, "field": f"media[{exc.place}].url", "host": _host(exc.url)}


def _worth(exc: UnfetchedItem) -> int:
    return 0 if exc.why.final else ATTEMPTS


def _given_up(exc: UnfetchedItem, post: StagedPost) -> bool:
    return post.attempt >= _worth(exc)


def _host(url: str) -> str | None:
    """Enough to know whose it is; the rest of a URL may be a secret."""
    try:
        return URL(url.strip()).host
    except ValueError:
        return None
