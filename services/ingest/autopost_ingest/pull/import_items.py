"""Import new items of a source in chunks; each chunk and the cursor are written in one transaction.

A chunk that the database refuses or that times out is halved, down to the item that causes it. That item is recorded as
refused and skipped, and the source goes on.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import asyncpg
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Profile
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.errors import is_retryable
from autopost_runtime.postgres.identity import new_id_text
from autopost_runtime.secrets.redaction import quoted
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct
from msgspec.structs import replace

from autopost_ingest.errors import AtCapacity, InvalidPost
from autopost_ingest.posts.compile import KnownProfiles
from autopost_ingest.posts.normalize import Normalized
from autopost_ingest.posts.offload import Offload
from autopost_ingest.pull.endings import Interrupted, PullFailed
from autopost_ingest.pull.gateway import ChunkResult, PullClaim, PullGateway
from autopost_ingest.pull.items import MOST_WORDS, Item, is_before
from autopost_ingest.pull.posts import (
    Internal,
    NotReadable,
    PassedOver,
    TooLarge,
    TooOld,
    item_refused,
    normalized_words,
    post_to_enqueue,
    post_to_stage,
    request_of,
)
from autopost_ingest.pull.source_config import SourceOptions

ATTEMPTS = 4
"""Calls for one chunk, when channels change meanwhile or on lock conflicts."""
CHUNK_WORDS = 1024 * 1024
"""Bytes of a chunk in all its renderings. Encoding it blocks the event loop."""
BEGUN = "begun"
"""Cursor key of a source that skips existing items: whether it was read to its end once."""
_LOCK_CONFLICTS = frozenset({"40001", "40P01", "55P03"})
_ITEM_ERRORS = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.ProgramLimitExceededError)


class SomeFailed(PullFailed):
    """Some items could not be stored; the others were. The cursor does not advance."""

    def __init__(self, exc: asyncpg.PostgresError) -> None:
        super().__init__("not_stored", f"items cannot be stored: {type(exc).__name__} ({exc.sqlstate})")


class NewItem(Struct, frozen=True, kw_only=True):
    """An item that was not imported before."""

    place: int
    """Index among all items read."""
    behind: int
    """Number of items read after it."""
    ref: str
    item: Item


class ImportLimits(Struct, frozen=True, kw_only=True):
    chunk: int = 100
    lease: timedelta = timedelta(seconds=180)
    audit_deduped: bool = False
    with_media: bool = True


class _Post(Struct, frozen=True, kw_only=True):
    ref: str
    request: PostRequest
    normalized: Normalized | None = None
    problem: InvalidPost | None = None
    batch_id: str = ""
    """The same for a whole chunk, across retries and splits."""


class ItemImporter:
    """For one pull of one source."""

    def __init__(
        self,
        claim: PullClaim,
        options: SourceOptions,
        gateway: PullGateway,
        profiles: KnownProfiles,
        wake: "Waker",
        limits: ImportLimits,
        offload: Offload | None = None,
    ) -> None:
        self._claim = claim
        self._options = options
        self._gateway = gateway
        self._profiles = profiles
        self._wake = wake
        self._limits = limits
        self._offload = offload or Offload()
        self._begins = options.first != "all" and _begins(claim.cursor_json)

    async def fresh(self, items: Sequence[Item]) -> list[NewItem]:
        """In the same order. Duplicates are kept, so that the second is reported."""
        last = len(items) - 1
        named = [NewItem(place=place, behind=last - place, ref=item.ref, item=item) for place, item in enumerate(items)]
        if not named:
            return []
        unseen = await self._gateway.unseen_pull_items(self._claim, [each.ref for each in named])
        return [each for each in named if each.ref in unseen]

    async def take(
        self,
        fresh: Sequence[NewItem],
        cursor: dict[str, Any],
        *,
        last: bool,
        marks: Sequence[Any] = (),
        newest: bool = True,
    ) -> None:
        """``cursor`` is the one after the last item; ``marks`` has the cursor value of each item read.

        ``newest``: no newer items follow. ``last``: the source has been read to its end.
        """
        renderings = max(1, len(self._profiles.known(self._claim.workspace_id)))
        chunks = list(_chunks(fresh, self._limits.chunk, CHUNK_WORDS // renderings)) or [[]]
        failed: SomeFailed | None = None
        for place, chunk in enumerate(chunks):
            is_end = place == len(chunks) - 1
            reached = cursor if is_end else _cursor_before(chunks[place + 1][0].place, marks)
            try:
                await self._take(chunk, {} if failed else reached, last=last and is_end and not failed, newest=newest)
            except SomeFailed as exc:
                failed = failed or exc
        if failed:
            raise failed

    async def _take(self, chunk: Sequence[NewItem], cursor: dict[str, Any], *, last: bool, newest: bool) -> None:
        posts = []
        batch_id = new_id_text()
        for each in chunk:
            posts.append(replace(await self._post(each, newest=newest), batch_id=batch_id))
            await asyncio.sleep(0)  # let requests run between long items
        if self._begins:
            cursor = cursor | {BEGUN: last}
        await self._offer(posts, cursor, last=last)

    async def _post(self, fresh: NewItem, *, newest: bool) -> _Post:
        most = self._options.first if newest and isinstance(self._options.first, int) else 0
        request = PostRequest()
        try:
            request = request_of(fresh.item, self._options, with_media=self._limits.with_media)
            if self._begins and fresh.behind >= most:
                return _Post(
                    ref=fresh.ref,
                    request=request,
                    problem=PassedOver("first", "already in the source when it was added"),
                )
            if problem := _problem(fresh, self._options, request):
                return _Post(ref=fresh.ref, request=request, problem=problem)
            normalized = await normalized_words(request, self._claim.workspace_id, self._offload)
            return _Post(ref=fresh.ref, request=request, normalized=normalized)
        except InvalidPost as problem:
            return _Post(ref=fresh.ref, request=request, problem=problem)
        except AtCapacity as exc:
            raise _at_capacity() from exc
        except Exception as exc:  # only this item is affected
            return _Post(ref=fresh.ref, request=request, problem=self._log_broken(fresh.ref, exc))

    def _log_broken(self, ref: str, exc: Exception) -> Internal:
        """Log the error; the other items continue."""
        log = get_logger(workspace_id=str(self._claim.workspace_id), source_id=self._claim.source_id)
        log.error("pull.item_failed", source_ref=quoted(ref), exc_info=exc)
        return Internal("item", f"converting the item to a post failed: {type(exc).__name__}")

    async def _offer(self, posts: list[_Post], cursor: dict[str, Any], *, last: bool) -> None:
        try:
            await self._settle(posts, cursor, last=last)
        except (*_ITEM_ERRORS, asyncpg.QueryCanceledError) as exc:
            half = len(posts) // 2
            if half:
                await self._offer(posts[:half], {}, last=False)
                await self._offer(posts[half:], cursor, last=last)
            elif posts and isinstance(exc, _ITEM_ERRORS):
                await self._call([], [item_refused(posts[0].ref, exc)], cursor, last=last)
            else:
                raise
        except asyncpg.PostgresError as exc:
            if not posts or is_retryable(exc) or (len(posts) > 1 and not await self._take_each(posts)):
                raise  # nothing can be stored, so no single item is the cause
            raise SomeFailed(exc) from exc

    async def _take_each(self, posts: Sequence[_Post]) -> int:
        """Import one by one without moving the cursor. Returns how many succeeded; the others come with the next
        pull."""
        taken = 0
        for post in posts:
            try:
                await self._settle([post], {}, last=False)
            except asyncpg.PostgresError as exc:
                if is_retryable(exc):
                    raise
                log = get_logger(workspace_id=str(self._claim.workspace_id), source_id=self._claim.source_id)
                log.warning("pull.item_failed", source_ref=quoted(post.ref), sqlstate=exc.sqlstate)
            else:
                taken += 1
        return taken

    async def _settle(self, posts: Sequence[_Post], cursor: dict[str, Any], *, last: bool) -> None:
        workspace = self._claim.workspace_id
        profiles = self._profiles.known(workspace)
        for turn in range(1, ATTEMPTS + 1):
            try:
                taken = await self._call(*await self._compiled(posts, profiles), cursor, last=last)
            except asyncpg.PostgresError as exc:
                if exc.sqlstate not in _LOCK_CONFLICTS or turn == ATTEMPTS:
                    raise
                continue
            if taken.verdict != "missing_profiles":
                return
            self._profiles.learn(workspace, taken.missing_profiles)
            profiles += taken.missing_profiles
        raise PullFailed("channels_changing", "channels are being changed, retried by the next pull")

    async def _compiled(
        self, posts: Sequence[_Post], profiles: tuple[Profile, ...]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Posts to store and refused items; one that is too complex does not affect the others."""
        compiled: list[dict[str, Any]] = []
        refused: list[dict[str, Any]] = []
        for post in posts:
            try:
                compiled.append(await self._one_compiled(post, profiles))
            except InvalidPost as problem:
                refused.append(item_refused(post.ref, problem))
            except AtCapacity as exc:
                raise _at_capacity() from exc
            except Exception as exc:  # only this item is affected
                refused.append(item_refused(post.ref, self._log_broken(post.ref, exc)))
            await asyncio.sleep(0)  # let requests run between items
        return compiled, refused

    async def _one_compiled(self, post: _Post, profiles: tuple[Profile, ...]) -> dict[str, Any]:
        """The post document for the database. Raises ``InvalidPost``."""
        source_id = self._claim.source_id
        if post.problem:
            raise post.problem
        if post.normalized is None or post.request.media:
            return post_to_stage(post.request, post.ref, source_id)
        renderings = await self._offload.render(self._claim.workspace_id, post.normalized, profiles)
        document = post_to_enqueue(post.request, post.normalized, post.ref, source_id, renderings)
        return document | {"batch_id": post.batch_id}

    async def _call(
        self, posts: list[dict[str, Any]], refused: list[dict[str, Any]], cursor: dict[str, Any], *, last: bool
    ) -> ChunkResult:
        taken = await self._gateway.ingest_pull_chunk(
            self._claim,
            posts,
            refused,
            cursor,
            last=last,
            lease=self._limits.lease,
            audit_deduped=self._limits.audit_deduped,
        )
        if taken.verdict in ("stale", "stopped"):
            raise Interrupted(taken.verdict)
        self._wake(self._claim, taken)
        return taken


class Waker:
    """Wakes the dispatchers, or the staging workers by ``staged``."""

    def __init__(self, bus: Bus, topology: Topology, staged: asyncio.Event | None) -> None:
        self._bus = bus
        self._topology = topology
        self._staged = staged

    def __call__(self, claim: PullClaim, taken: ChunkResult) -> None:
        if taken.enqueued:
            self._bus.wake(self._topology.wakeup_dispatch(claim.workspace_id))
        if taken.staged and self._staged is not None:
            self._staged.set()


def _chunks(fresh: Sequence[NewItem], most: int, most_words: int) -> Iterator[Sequence[NewItem]]:
    """Chunks for one transaction each, by number of items and total length."""
    first, words = 0, 0
    for place, each in enumerate(fresh):
        length = len(each.item.summary) + len(each.item.content)
        if place > first and (place - first == most or words + length > most_words):
            yield fresh[first:place]
            first, words = place, 0
        words += length
    if fresh:
        yield fresh[first:]


def _at_capacity() -> PullFailed:
    """Not caused by an item: the next pull imports them all."""
    return PullFailed("at_capacity", "server is at capacity, retried by the next pull")


def _begins(cursor: dict[str, Any]) -> bool:
    """Not read to its end yet. A cursor without the key is from before the key existed and counts as read."""
    return not cursor.get(BEGUN, bool(cursor))


def _problem(fresh: NewItem, options: SourceOptions, request: PostRequest) -> InvalidPost | None:
    if fresh.item.problem:
        return NotReadable("item", f"parsing failed: {fresh.item.problem}")
    if fresh.item.is_too_large or len((request.text or "").encode(errors="replace")) > MOST_WORDS:
        return TooLarge("text", f"must not be longer than {MOST_WORDS} bytes")
    if options.since and is_before(fresh.item, options.since):
        return TooOld("date", f"before {options.since.isoformat()}")
    return None


def _cursor_before(place: int, marks: Sequence[Any]) -> dict[str, Any]:
    """The last cursor value that is completely imported: neighbouring items may share one value."""
    if not marks:
        return {}
    for mark in reversed(marks[:place]):
        if mark != marks[place]:
            return {"last_seen": mark}
    return {}
