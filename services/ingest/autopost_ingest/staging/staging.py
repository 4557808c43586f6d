"""Workers for staged posts: fetch their media under a lease, then enqueue them like any other post.

A post is leased to one worker of all replicas and finished in one transaction that checks the lease. Staging a post
wakes the workers of the same process; other replicas find it by polling.

A pushed post fails when a medium cannot be fetched, so that its sender can correct it. A pulled item is posted without
that medium, if anything else is left.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

from autopost_contracts.payload import MediaItem, PostRequest
from autopost_runtime.fetch.fetch import Unfetched
from autopost_runtime.lifecycle.cancelling import end
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct, convert
from msgspec.structs import replace
from yarl import URL

from autopost_ingest.errors import InvalidPost, log_background_error
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.normalize import Normalized, media_type
from autopost_ingest.posts.stored_media import StoredMedia, with_urls
from autopost_ingest.staging.download import StorageFailed
from autopost_ingest.staging.finish import Finisher
from autopost_ingest.staging.gateway import FinishResult, StagedGateway, StagedPost
from autopost_ingest.staging.media_import import LeaseLost, MediaImporter

ATTEMPTS = 5
"""Attempts to fetch from a server that fails."""

OUR_ATTEMPTS = 20
"""Attempts for failures on our side; about two hours including the waits."""

RELEASE_LIMIT = timedelta(seconds=4)
"""How long a stop waits for leases to be released; the others expire."""

ended = metrics.counter("autopost_staged_posts_total", "Processed staged posts by outcome.")


class StagingLimits(Struct, frozen=True, kw_only=True):
    concurrency: int
    per_workspace: int
    lease: timedelta
    poll_interval: timedelta


class StagingFailure(Struct, frozen=True):
    """Why the media could not be fetched; ``error`` is stored in its event."""

    error: dict[str, Any]
    attempts: int
    retry_after: timedelta | None = None


class UnfetchedItem(Exception):  # noqa: N818  named for what happened
    """Which medium could not be fetched, and why."""

    def __init__(self, place: int, url: str, why: Unfetched) -> None:
        super().__init__(why.code)
        self.place, self.url, self.why = place, url, why


class StagingWorkers:
    def __init__(
        self,
        gateway: StagedGateway,
        importer: MediaImporter,
        stored_media: StoredMedia,
        enqueuer: Enqueuer,
        pace: StagingLimits,
        *,
        staged: asyncio.Event,
    ) -> None:
        self._gateway = gateway
        self._importer = importer
        self._stored_media = stored_media
        self._offload = enqueuer.offload
        self._finisher = Finisher(gateway, enqueuer)
        self._pace = pace
        self._tasks: set[asyncio.Task[None]] = set()
        self._wakeup = staged
        self._stopping = False

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncIterator[None]:
        """Runs until the ``async with`` is left, then releases every lease."""
        loop = service.spawn(self._run(), "staging")
        try:
            yield
        finally:
            self._stopping = True
            self._wakeup.set()
            await asyncio.wait({loop})
            await self._release_all()

    async def _release_all(self) -> None:
        """Cancelled only once: each task still has to release its lease in the database."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=RELEASE_LIMIT.total_seconds())

    async def _run(self) -> None:
        """Not cancelled during a lease call: posts it leased would have no worker."""
        while not self._stopping:
            self._wakeup.clear()
            await self._lease()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.poll_interval.total_seconds()):
                    await self._wakeup.wait()

    async def _lease(self) -> None:
        room = self._pace.concurrency - len(self._tasks)
        if room <= 0:
            return
        try:
            leased = await self._gateway.lease_staged_posts(room, self._pace.per_workspace, self._pace.lease)
        except Exception as exc:
            log_background_error(exc, "staging.lease_failed")
            return
        for post in leased:
            task = asyncio.create_task(self._work(post), name=f"staged {post.post_id}")
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wakeup.set()
        if not task.cancelled() and (exc := task.exception()):
            get_logger().error("staging.failed", exc_info=exc)

    async def _work(self, post: StagedPost) -> None:
        """The post is always finished, retried, failed or released; only a lost lease ends without a write."""
        work = asyncio.create_task(self._finish(post))
        renewal = asyncio.create_task(self._renew(post))
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
            verdict = await self._record_failure(post, work) if work.done() else renewal.result()
            ended.add(1, {"verdict": verdict})
        except asyncio.CancelledError:
            await end({work})
            await self._gateway.release_staged_post(post)
            raise
        finally:
            await end({work, renewal})

    async def _renew(self, post: StagedPost) -> str:
        """Renews the lease until it is lost."""
        while True:
            await asyncio.sleep(self._pace.lease.total_seconds() / 3)
            try:
                if not await self._gateway.renew_staged_post(post, self._pace.lease):
                    return "stale"
            except Exception as exc:
                if not is_retryable(exc):
                    raise

    async def _record_failure(self, post: StagedPost, work: "asyncio.Task[str]") -> str:
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

    async def _finish(self, post: StagedPost) -> str:
        with telemetry.tracer().start_as_current_span(
            "finish_staged_post", context=telemetry.context_from(post.traceparent)
        ) as span:
            span.set_attribute("autopost.workspace_id", str(post.workspace_id))
            if post.attempt > OUR_ATTEMPTS:  # workers died while processing it
                raise Unfetched("worker_lost", final=True)
            request = convert(post.request, PostRequest)
            finished = await self._finish_by_url(post, request) or await self._finish_with_media(post, request)
            span.set_attribute("autopost.verdict", finished.verdict)
            return finished.verdict

    async def _finish_by_url(self, post: StagedPost, request: PostRequest) -> FinishResult | None:
        return await self._finisher.finish_by_url(post, request, await self._normalized(post, request))

    async def _finish_with_media(self, post: StagedPost, request: PostRequest) -> FinishResult:
        request, items, lost = await self._with_media(post, request)
        normalized = await self._normalized(post, request)
        return await self._finisher.finish(post, request, with_urls(normalized, items), lost)

    async def _normalized(self, post: StagedPost, request: PostRequest) -> Normalized:
        normalized = await self._offload.normalize(post.workspace_id, request)
        return await self._stored_media.look_up(post.workspace_id, normalized)

    async def _with_media(
        self, post: StagedPost, request: PostRequest
    ) -> tuple[PostRequest, list[MediaItem], list[dict[str, Any]]]:
        """Fetch one item after the other, so that a post with a hundred images causes no more load than one with one.

        Returns the request with stored media, the items as requested, and the errors of the missing ones.
        """
        media: list[MediaItem] = []
        items: list[MediaItem] = []
        lost: list[UnfetchedItem] = []
        for place, item in enumerate(request.media):
            try:
                media.append(await self._stored(post, place, item))
                items.append(item)
            except UnfetchedItem as exc:
                if not post.is_pulled or not _has_no_attempts_left(exc, post):
                    raise
                lost.append(exc)
        if lost and not (media or request.text or request.links):
            raise lost[0]
        return replace(request, media=tuple(media)), items, [_error_of(each) for each in lost]

    async def _stored(self, post: StagedPost, place: int, item: MediaItem) -> MediaItem:
        if item.url is None:
            return item
        try:
            blob_ref = await self._importer.import_media(post, item.url.strip(), media_type(item))
        except Unfetched as why:
            raise UnfetchedItem(place, item.url, why) from why
        return replace(item, url=None, blob_ref=blob_ref)


def _failure(exc: BaseException) -> StagingFailure | None:
    """``None`` when the lease is lost."""
    match exc:
        case LeaseLost():
            return None
        case UnfetchedItem():
            return StagingFailure(_error_of(exc), _attempts_for(exc), exc.why.retry_after)
        case Unfetched():
            return StagingFailure({"code": exc.code}, 0)
        case InvalidPost():
            return StagingFailure({"code": "refused", "field": exc.field, "message": exc.reason}, 0)
        case StorageFailed():
            return StagingFailure({"code": "store_away"}, OUR_ATTEMPTS)
        case _:
            return StagingFailure({"code": "internal", "message": type(exc).__name__}, OUR_ATTEMPTS)


def _error_of(exc: UnfetchedItem) -> dict[str, Any]:
    return {"code": exc.why.code, "field": f"media[{exc.place}].url", "host": _host(exc.url)}


def _attempts_for(exc: UnfetchedItem) -> int:
    return 0 if exc.why.final else ATTEMPTS


def _has_no_attempts_left(exc: UnfetchedItem, post: StagedPost) -> bool:
    return post.attempt >= _attempts_for(exc)


def _host(url: str) -> str | None:
    """Only the host: the rest of a URL may be secret."""
    try:
        return URL(url.strip()).host
    except ValueError:
        return None
